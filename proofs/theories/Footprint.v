(* What a tile of each operator reads and writes: src/ops/*/tile.cpp, written down again. A test compares the two over random
   instances (tests/proofs), so that neither changes without the other. *)
From Coq Require Import List Arith Bool Lia.
From Plow Require Import Program.
Import ListNotations.

Record operand_shape := { o_kind : nat; o_rows : nat; o_cols : nat }.

Section Instance.
Variable attributes : list nat.
Variable operands : list operand_shape.  (* the inputs, then the output *)
Definition none := {| o_kind := 0; o_rows := 0; o_cols := 0 |}.
Definition attribute (i : nat) : nat := nth i attributes 0.
Definition operand (i : nat) : operand_shape := nth i operands none.
Definition cols (i : nat) : nat := o_cols (operand i).
Definition output : nat := length operands - 1.
Definition out_cols : nat := cols output.
Definition column_unit : nat := 16.  (* kColumnUnit *)

Definition when (fits : bool) (unit : nat) : nat := if fits then unit else 0.
Definition divides (d n : nat) : bool := (0 <? d) && (n mod d =? 0).
Definition all_cols_equal : bool := forallb (fun o => o_cols o =? out_cols) operands.
Definition is_vector (i n : nat) : bool := (o_kind (operand i) =? 0) && (o_rows (operand i) =? 1) && (cols i =? n).
Definition is_product (x w : nat) : bool :=
  (o_kind (operand w) =? 0) && (o_rows (operand w) =? out_cols) && (cols w =? cols x).
Definition is_rope (x table head_dim : nat) : bool :=
  divides head_dim (cols x) && (cols table mod 2 =? 0) && (cols table <=? head_dim).
Definition attention_unit (head_dim : nat) : nat :=
  let kv := cols (output - 1) in
  when ((cols 0 =? out_cols) && (0 <? kv) && divides head_dim kv && (0 <? out_cols) && divides kv out_cols)
    (head_dim * (out_cols / kv)).
Definition is_part : bool :=
  let b := attribute 0 in let e := attribute 1 in
  (b <? e) && (e <=? cols 0) && (b mod 2 =? 0) && ((e mod 2 =? 0) || (e =? cols 0)).

Definition are_parts (n : nat) : bool := (0 <? n) && (n <=? 32).  (* kMostAttentionParts *)

(* Legal widths of a column tile are the multiples of this; 0: the operands or attributes do not fit the operator. *)
Definition unit_of (op : nat) : nat :=
  match op with
  | 16 => when ((cols 0 =? out_cols) && (cols 1 =? 1)) column_unit                      (* embed *)
  | 17 | 20 | 25 | 26 | 28 => when all_cols_equal column_unit                           (* scale bias_add add glu soft_cap *)
  | 18 => let g := attribute 2 in when ((cols 0 =? out_cols) && (cols 1 =? g) && divides g out_cols) g  (* rms_norm *)
  | 19 => when (is_product 0 1) column_unit                                            (* linear *)
  | 21 => when ((0 <? out_cols) && (out_cols mod 2 =? 0) && (cols 0 =? out_cols / 2) && (cols 1 =? 1)) out_cols  (* rope_table *)
  | 22 => when ((cols 0 =? out_cols) && is_rope 0 1 (attribute 0)) (attribute 0)        (* rope *)
  | 23 => when (all_cols_equal && divides (attribute 0) out_cols) (attribute 0)         (* kv_append *)
  | 24 => attention_unit (attribute 0)                                                 (* attention *)
  | 27 => when ((cols 0 =? out_cols) && (cols 1 =? 1)) column_unit                      (* gather_rows *)
  | 29 => when ((out_cols =? 1) && (0 <? cols 0)) 1                                     (* sample *)
  | 30 => when (is_product 0 1 && (cols 2 =? out_cols) && is_part) column_unit          (* linear_add *)
  | 31 => when (is_product 0 1 && is_part) column_unit                                  (* linear_part *)
  | 32 => when (is_product 0 2 && is_vector 1 (cols 0)) column_unit                     (* norm_linear *)
  | 33 => when (is_product 0 1 && is_product 0 2) column_unit                           (* glu_linear *)
  | 34 => when (is_product 0 2 && is_product 0 3 && is_vector 1 (cols 0)) column_unit   (* norm_glu_linear *)
  | 35 => when (is_product 0 1 && is_vector 2 out_cols) column_unit                     (* linear_bias *)
  | 36 => when (is_product 0 2 && is_vector 1 (cols 0) && is_vector 3 out_cols) column_unit  (* norm_linear_bias *)
  | 37 => when ((cols 0 =? out_cols) && is_rope 0 2 (attribute 0) && is_vector 1 (attribute 0)) (attribute 0)  (* norm_rope *)
  | 38 => when ((cols 0 =? out_cols) && (cols 1 =? out_cols) && (cols 3 =? out_cols) && is_rope 0 2 (attribute 0))
            (attribute 0)                                                              (* rope_kv_append *)
  | 39 => when ((cols 0 =? out_cols) && (cols 2 =? out_cols) && (cols 4 =? out_cols) && is_vector 1 (attribute 0) &&
                is_rope 0 3 (attribute 0)) (attribute 0)                               (* norm_rope_kv_append *)
  | 40 => if is_rope 0 1 (attribute 0) then attention_unit (attribute 0) else 0         (* rope_attention *)
  | 41 => if is_rope 0 2 (attribute 0) && is_vector 1 (attribute 0) then attention_unit (attribute 0) else 0  (* norm_rope_attention *)
  | 42 => when ((cols 0 =? out_cols) && (cols 2 =? out_cols) && is_vector 1 out_cols) out_cols  (* norm_add *)
  | 43 => let d := attribute 0 in let kv := cols 1 in                                  (* attention_part *)
          when ((0 <? kv) && divides d kv && (0 <? cols 0) && divides kv (cols 0) && are_parts (attribute 4) &&
                (out_cols =? kv / d * (attribute 4 * (cols 0 / kv * (d + 2))))) (cols 0 / kv * (d + 2))
  | 44 => let kv_head := attribute 2 * attribute 0 in                                  (* attention_merge *)
          when ((0 <? out_cols) && divides kv_head out_cols && are_parts (attribute 1) &&
                (cols 0 =? out_cols / kv_head * (attribute 1 * (attribute 2 * (attribute 0 + 2))))) (attribute 0)
  | _ => 0
  end.

(* How many operands each has. *)
Definition arity (op : nat) : nat :=
  match op with
  | 17 | 28 | 29 | 44 => 2
  | 16 | 18 | 19 | 20 | 21 | 22 | 24 | 25 | 26 | 27 | 31 | 43 => 3
  | 23 | 30 | 32 | 33 | 35 | 37 | 40 | 42 => 4
  | 34 | 36 | 38 | 41 => 5
  | 39 => 6
  | _ => 0
  end.

Variables first last : nat.  (* columns of the output *)
Definition tile (i b e : nat) : region := {| g_operand := i; g_writes := false; g_rows := TileRows; g_first := b; g_end := e |}.
Definition rows (i b e c d : nat) : region := {| g_operand := i; g_writes := false; g_rows := FixedRows b e; g_first := c; g_end := d |}.
Definition any (i b e : nat) : region := {| g_operand := i; g_writes := false; g_rows := AllRows; g_first := b; g_end := e |}.
Definition write : region := {| g_operand := output; g_writes := true; g_rows := TileRows; g_first := first; g_end := last |}.
Definition whole (i : nat) : region := tile i 0 (cols i).
Definition here (i : nat) : region := tile i first last.
Definition vector (i : nat) : region := rows i 0 1 0 (cols i).
Definition matrix (i : nat) : region := rows i first last 0 (cols i).
Definition cache : region :=
  let heads := out_cols / cols (output - 1) in any (output - 1) (first / heads) (last / heads).
Definition part (i : nat) : region := tile i (attribute 0) (attribute 1).
Definition matrix_part (i : nat) : region := rows i first last (attribute 0) (attribute 1).

Definition footprint (op : nat) : list region :=
  match op with
  | 16 => [rows 0 0 (o_rows (operand 0)) first last; tile 1 0 1; write]
  | 17 | 28 => [here 0; write]
  | 18 => [here 0; rows 1 0 1 0 (attribute 2); write]
  | 19 => [whole 0; matrix 1; write]
  | 20 => [here 0; rows 1 0 1 first last; write]
  | 21 => [vector 0; tile 1 0 1; write]
  | 22 => [here 0; whole 1; write]
  | 23 => [here 0; here 1; write]
  | 24 => [here 0; cache; write]
  | 25 | 26 => [here 0; here 1; write]
  | 27 => [any 0 first last; tile 1 0 1; write]
  | 29 => [whole 0; write]
  | 30 => [part 0; matrix_part 1; here 2; write]
  | 31 => [part 0; matrix_part 1; write]
  | 32 => [whole 0; vector 1; matrix 2; write]
  | 33 => [whole 0; matrix 1; matrix 2; write]
  | 34 => [whole 0; vector 1; matrix 2; matrix 3; write]
  | 35 => [whole 0; matrix 1; rows 2 0 1 first last; write]
  | 36 => [whole 0; vector 1; matrix 2; rows 3 0 1 first last; write]
  | 37 => [here 0; vector 1; whole 2; write]
  | 38 => [here 0; here 1; whole 2; write]
  | 39 => [here 0; vector 1; here 2; whole 3; write]
  | 40 => [here 0; whole 1; cache; write]
  | 41 => [here 0; vector 1; whole 2; cache; write]
  | 42 => [here 0; vector 1; here 2; write]
  | 43 => let d := attribute 0 in let heads := cols 0 / cols 1 in let kv_head := attribute 4 * (heads * (d + 2)) in
          let b := first / kv_head in let e := (last - 1) / kv_head + 1 in
          [tile 0 (b * (heads * d)) (e * (heads * d)); any 1 (b * d) (e * d); write]
  | 44 => let kv_head := attribute 2 * attribute 0 in let parts := attribute 1 * (attribute 2 * (attribute 0 + 2)) in
          [tile 0 (first / kv_head * parts) (((last - 1) / kv_head + 1) * parts); write]
  | _ => []
  end.
End Instance.

(* Row tiles count the rows of the output; of what appends to the cache, those of the keys. *)
Definition appends (op : nat) : bool := (op =? 23) || (op =? 38) || (op =? 39).
Definition kind_of (op : nat) (shapes : list operand_shape) : nat :=
  o_kind (if appends op then nth 0 shapes none else nth (length shapes - 1) shapes none).

(* The runs of neighbouring column tiles of a packet: [begin, end). *)
Definition column_runs (p : packet) (width : nat) : list (nat * nat) :=
  if p_col_stride p =? 1 then
    [(p_col_first p * p_tile_cols p, min ((p_col_first p + p_col_count p) * p_tile_cols p) width)]
  else
    map (fun i => let b := (p_col_first p + i * p_col_stride p) * p_tile_cols p in (b, min (b + p_tile_cols p) width))
      (seq 0 (p_col_count p)).
