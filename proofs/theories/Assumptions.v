(* What the theorems rest on, all at once; compared with Assumptions.golden. *)
From Plow Require Import Theorems EveryRule.
Definition every_theorem :=
  (@every_rule_holds,
   @accepted_never_deadlocks,
   @accepted_one_result,
   @accepted_reads_follow_writes,
   @accepted_made_once,
   @accepted_in_bounds,
   @accepted_banks,
   @accepted_steps_end,
   @accepted_goes_on_for_ever,
   @accepted_elements_made_once,
   @accepted_regions_in_bounds).
Print Assumptions every_theorem.
