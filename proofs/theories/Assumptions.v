(* What the theorems rest on, all at once; compared with Assumptions.golden. *)
From Plow Require Import Verify Theorems EveryRule Encode Cache Cost.
Definition every_theorem :=
  (@every_rule_holds,
   @parts_are_the_whole,
   @accepted_never_deadlocks,
   @accepted_one_result,
   @accepted_reads_follow_writes,
   @accepted_made_once,
   @accepted_in_bounds,
   @accepted_banks,
   @accepted_steps_end,
   @accepted_goes_on_for_ever,
   @accepted_elements_made_once,
   @accepted_regions_in_bounds,
   @decoder_reads_what_was_written,
   @tables_give_own_cells,
   @rows_read_their_own,
   @cost_monotone,
   @part_costs_no_more,
   @bound_is_a_bound).
Print Assumptions every_theorem.
