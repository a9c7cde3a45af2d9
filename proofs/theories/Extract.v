(* The checker and the decoder as OCaml. Numbers: nat becomes the machine's 63-bit int, N becomes Zarith (TRUSTED.md says why
   neither overflows). *)
From Coq Require Import NArith PeanoNat Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZBigInt.
From Plow Require Import Machine Sync Memory Races Program Footprint Verify Decode.
Extraction Inline Sumbool.sumbool_of_bool.
(* Unary as Coq defines them, or compared as values of any type. Each has two names. *)
Extract Inlined Constant Coq.Init.Nat.eqb => "Stdlib.Int.equal".
Extract Inlined Constant PeanoNat.Nat.eqb => "Stdlib.Int.equal".
Extract Inlined Constant Coq.Init.Nat.leb => "(fun (a : int) (b : int) -> a <= b)".
Extract Inlined Constant PeanoNat.Nat.leb => "(fun (a : int) (b : int) -> a <= b)".
Extract Inlined Constant Coq.Init.Nat.ltb => "(fun (a : int) (b : int) -> a < b)".
Extract Inlined Constant PeanoNat.Nat.ltb => "(fun (a : int) (b : int) -> a < b)".
Extract Constant Coq.Init.Nat.compare => "fun (n : int) (m : int) -> if n = m then Eq else if n < m then Lt else Gt".
Extract Constant PeanoNat.Nat.compare => "fun (n : int) (m : int) -> if n = m then Eq else if n < m then Lt else Gt".
Extract Inlined Constant Coq.Init.Nat.sub => "(fun (a : int) (b : int) -> if a > b then a - b else 0)".
Extract Inlined Constant PeanoNat.Nat.sub => "(fun (a : int) (b : int) -> if a > b then a - b else 0)".
Extract Inlined Constant Coq.Init.Nat.div => "(fun (a : int) (b : int) -> if b = 0 then 0 else a / b)".
Extract Inlined Constant PeanoNat.Nat.div => "(fun (a : int) (b : int) -> if b = 0 then 0 else a / b)".
Extract Inlined Constant Coq.Init.Nat.modulo => "(fun (a : int) (b : int) -> if b = 0 then a else a mod b)".
Extract Inlined Constant PeanoNat.Nat.modulo => "(fun (a : int) (b : int) -> if b = 0 then a else a mod b)".
Extract Inlined Constant Coq.Init.Nat.min => "(fun (a : int) (b : int) -> if a < b then a else b)".
Extract Inlined Constant PeanoNat.Nat.min => "(fun (a : int) (b : int) -> if a < b then a else b)".
Extract Inlined Constant N.of_nat => "Big_int_Z.big_int_of_int".
Extract Inlined Constant N.to_nat => "Big_int_Z.int_of_big_int".
Extraction "plow.ml" verify verify_part in_part decode check_program tables_ok check_code check_step step_code link_map step_tiles tensors_of most_tiles
  check_counter check_worker check_instr check_end signal_map check_tensor check_pair touch_map packet_ok tensor_ok
  regions_of unit_of footprint kind_of arity
  magic abi_version absent kPrograms kWorkers kPackets kWaits kSignals kTensors kGroups section_ok section_start section_elements
  decode_space decode_element decode_band op_leave op_clear op_advance sampled_column column_unit.
