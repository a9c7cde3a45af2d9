(* What the operators of a graph compute, over any numbers that add and multiply as real ones do. The rewriter's rules are proved
   over these values; rounding is the tests' part (src/rewrite/rule_test.cpp).

   Functions that no rule looks into (an activation, 1 over a root, softmax with its window and soft cap) are any functions: what is
   proved holds whatever they are. *)
From Coq Require Import List Arith Ring.

(* The numbers, and what is known of them. *)
Record numbers := {
  number : Type;
  zero : number; one : number;
  add : number -> number -> number; mul : number -> number -> number; sub : number -> number -> number; opp : number -> number;
  ring_laws : ring_theory zero one add mul sub opp (@eq number);
  positive : number -> Prop;
  over_count : nat -> number;                 (* 1 over a number of columns *)
  over_root : number -> number;               (* 1 over a square root *)
  over_root_of_square : forall f m, positive f -> mul f (over_root (mul (mul f f) m)) = over_root m;
  activate : nat -> number -> number;         (* of a gated unit, by its number *)
  cap : number -> number -> number;           (* c tanh(x / c) *)
  cache : Type;                               (* the keys and values of a layer, of all sequences *)
  key : cache -> nat -> nat -> nat -> nat -> number;  (* for a row of the step: head, position, column in the head *)
  store : nat -> (nat -> nat -> number) -> (nat -> nat -> number) -> cache -> cache;
  (* What a row gets from its scores (by head and position): window, soft cap, softmax, and the values. *)
  attend : nat -> nat -> number -> nat -> (nat -> nat -> number) -> cache -> nat -> number;
  attend_by_scores : forall d w z i a b s c, (forall h p, a h p = b h p) -> attend d w z i a s c = attend d w z i b s c
}.

Section Values.
Variable A : numbers.
Notation num := (number A).
Notation "x + y" := (add A x y).
Notation "x * y" := (mul A x y).
Notation "x - y" := (sub A x y).

(* A matrix. row_of: which of the step's tokens a row belongs to. *)
Record value := { width : nat; height : nat; row_of : nat -> nat; elt : nat -> nat -> num }.
Definition same (a b : value) : Prop :=
  width a = width b /\ height a = height b /\ (forall r, row_of a r = row_of b r) /\ forall r c, elt a r c = elt b r c.

Fixpoint sum (f : nat -> num) (n : nat) : num := match n with 0 => zero A | S m => sum f m + f m end.
Definition alike (a b : value) : Prop := width a = width b /\ height a = height b /\ forall r, row_of a r = row_of b r.
(* Over first, first + 1, ... below last. *)
Definition sum_range (f : nat -> num) (first last : nat) : num := sum (fun i => f (first + i)%nat) (last - first).

Definition map_of (x : value) (f : nat -> nat -> num) : value :=
  {| width := width x; height := height x; row_of := row_of x; elt := f |}.

Definition op_add (x y : value) : value := map_of x (fun r c => elt x r c + elt y r c).
Definition op_scale (f : num) (x : value) : value := map_of x (fun r c => elt x r c * f).
Definition op_soft_cap (k : num) (x : value) : value := map_of x (fun r c => cap A k (elt x r c)).
Definition op_bias_add (x b : value) : value := map_of x (fun r c => elt x r c + elt b 0 c).
Definition op_glu (a : nat) (x y : value) : value := map_of x (fun r c => activate A a (elt x r c) * elt y r c).
Definition op_rms_norm (eps offset : num) (group : nat) (x g : value) : value :=
  map_of x (fun r c =>
    let mean := over_count A group * sum (fun j => elt x r (c / group * group + j)%nat * elt x r (c / group * group + j)%nat) group in
    elt x r c * over_root A (mean + eps) * (elt g 0 (c mod group) + offset)).
Definition op_linear_part (first last : nat) (x w : value) : value :=
  {| width := height w; height := height x; row_of := row_of x;
     elt := fun r c => sum_range (fun k => elt x r k * elt w c k) first last |}.
Definition op_linear (x w : value) : value := op_linear_part 0 (width x) x w.
Definition op_rope (d : nat) (x t : value) : value :=
  let h := width t / 2 in
  map_of x (fun r c =>
    let j := c mod d in
    if j <? h then elt x r c * elt t r j - elt x r (c + h)%nat * elt t r (h + j)%nat
    else if j <? (h + h)%nat then elt x r c * elt t r (j - h)%nat + elt x r (c - h)%nat * elt t r j
    else elt x r c).
Definition op_kv_append (d : nat) (k v : value) (s : cache A) : cache A := store A d (elt k) (elt v) s.
Definition op_attention (d w : nat) (scale softcap : num) (q : value) (s : cache A) : value :=
  map_of q (fun r c => attend A d w softcap (row_of q r)
    (fun h p => scale * sum (fun j => elt q r (h * d + j)%nat * key A s (row_of q r) h p j) d) s c).
Definition op_gather_rows (x : value) (rows : nat -> nat) : value :=
  {| width := width x; height := height x; row_of := fun r => row_of x (rows r); elt := fun r c => elt x (rows r) c |}.

(* Fused operators are these compositions (src/ops/README.md). *)
Definition op_linear_add (first last : nat) (x w r : value) : value := op_add r (op_linear_part first last x w).
Definition op_linear_bias (x w b : value) : value := op_bias_add (op_linear x w) b.
Definition op_glu_linear (a : nat) (x wg wu : value) : value := op_glu a (op_linear x wg) (op_linear x wu).
Definition op_norm_linear (eps offset : num) (x g w : value) : value := op_linear (op_rms_norm eps offset (width x) x g) w.
Definition op_norm_linear_bias (eps offset : num) (x g w b : value) : value := op_linear_bias (op_rms_norm eps offset (width x) x g) w b.
Definition op_norm_glu_linear (eps offset : num) (a : nat) (x g wg wu : value) : value :=
  op_glu_linear a (op_rms_norm eps offset (width x) x g) wg wu.
Definition op_norm_rope (d : nat) (eps offset : num) (x g t : value) : value := op_rope d (op_rms_norm eps offset d x g) t.
Definition op_norm_add (eps offset : num) (y g r : value) : value := op_add r (op_rms_norm eps offset (width y) y g).
Definition op_rope_kv_append (d : nat) (k v t : value) (s : cache A) : cache A := op_kv_append d (op_rope d k t) v s.
Definition op_norm_rope_kv_append (d : nat) (eps offset : num) (k g v t : value) (s : cache A) : cache A :=
  op_kv_append d (op_norm_rope d eps offset k g t) v s.
Definition op_rope_attention (d w : nat) (scale softcap : num) (q t : value) (s : cache A) : value :=
  op_attention d w scale softcap (op_rope d q t) s.
Definition op_norm_rope_attention (d w : nat) (scale softcap eps : num) (q g t : value) (s : cache A) : value :=
  op_attention d w scale softcap (op_norm_rope d eps (zero A) q g t) s.

(* Values that a rule makes of others. *)
Definition fun_plus (g : value) (o : num) : value := map_of g (fun r c => elt g r c + o).
End Values.
