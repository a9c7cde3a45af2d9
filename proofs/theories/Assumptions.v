(* What every theorem rests on; compared with Assumptions.golden. *)
From Plow Require Import Theorems.
Print Assumptions accepted_never_deadlocks.
Print Assumptions accepted_one_result.
Print Assumptions accepted_reads_follow_writes.
Print Assumptions accepted_made_once.
Print Assumptions accepted_in_bounds.
Print Assumptions accepted_banks.
