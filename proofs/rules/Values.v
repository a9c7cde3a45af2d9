(* What the operators of a graph compute, over any numbers that add and multiply as real ones do. The rewriter's rules are proved
   over these values; rounding is the tests' part (src/rewrite/rule_test.cpp).

   Functions that no rule looks into (an activation, 1 over a root, a soft cap, which number is taken as the maximum of scores) are any
   functions: what is proved holds whatever they are. *)
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
  bend : number -> number -> number;          (* the soft cap of a score, if there is one *)
  greatest : (nat -> number) -> nat -> nat -> number;  (* what is subtracted from scores, of those of a range *)
  exp : number -> number;
  exp_of_sum : forall a b, exp (add a b) = mul (exp a) (exp b);
  over : number -> number;                    (* 1 over a number; of 0 it is 0 *)
  over_product : forall a b, over (mul a b) = mul (over a) (over b);
  over_exp : forall a, mul (exp a) (over (exp a)) = one;
  position : nat -> nat;                      (* of a row of the step, in its sequence *)
  cache : Type;                               (* the keys and values of a layer, of all sequences *)
  cache_width : cache -> nat;
  key : cache -> nat -> nat -> nat -> nat -> number;   (* for a row of the step: query head, position, column in the head *)
  item : cache -> nat -> nat -> nat -> nat -> number;  (* values, likewise *)
  store : nat -> (nat -> nat -> number) -> (nat -> nat -> number) -> cache -> cache
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
(* Scores of a query with all keys, by head and position. *)
Definition scores (d : nat) (scale : num) (q : value) (s : cache A) (r h p : nat) : num :=
  scale * sum (fun j => elt q r (h * d + j)%nat * key A s (row_of q r) h p j) d.
(* The positions that row i of the step attends to: from begin_of on, below end_of. *)
Definition end_of (i : nat) : nat := S (position A i).
Definition begin_of (w i : nat) : nat := if w =? 0 then 0 else (end_of i - w)%nat.
(* Softmax of the scores of a head, times the values. *)
Definition attend (d w : nat) (softcap : num) (i : nat) (score : nat -> nat -> num) (s : cache A) (c : nat) : num :=
  let weight p := exp A (bend A softcap (score (c / d) p)) in
  sum_range (fun p => weight p * item A s i (c / d) p (c mod d)) (begin_of w i) (end_of i) *
  over A (sum_range weight (begin_of w i) (end_of i)).
Definition op_attention (d w : nat) (scale softcap : num) (q : value) (s : cache A) : value :=
  map_of q (fun r c => attend d w softcap (row_of q r) (scores d scale q s r) s c).
(* Whole heads, and as many of them for each of the cache's. *)
Definition fits_cache (d : nat) (q : value) (s : cache A) : Prop :=
  0 < d /\ (exists heads, width q = heads * d)%nat /\ 0 < width q / cache_width A s.

(* Attention in n parts (src/abi/attention_parts.h). Where part p begins, and the one before it ends; units of 64 positions. *)
Definition cut (w n i p : nat) : nat :=
  let first := begin_of w i / 64 in let units := (S ((end_of i - 1) / 64) - first)%nat in
  Nat.max (begin_of w i) (Nat.min (end_of i) (64 * (first + units * p / n))%nat).
(* The columns of a part of all query heads of a kv head: their outputs, their maxima, their sums. *)
Definition part_cols (d heads : nat) : nat := (heads * (d + 2))%nat.
Definition op_attention_part (d w : nat) (scale softcap : num) (n : nat) (q : value) (s : cache A) : value :=
  let heads := width q / cache_width A s in
  {| width := (width q / d * (n * (d + 2)))%nat; height := height q; row_of := row_of q;
     elt := fun r c =>
       let tile := c / part_cols d heads in let column := c mod part_cols d heads in
       let p := tile mod n in let head h := (tile / n * heads + h)%nat in
       let score h x := bend A softcap (scores d scale q s r (head h) x) in
       let range f := sum_range f (cut w n (row_of q r) p) (cut w n (row_of q r) (S p)) in
       let most h := greatest A (score h) (cut w n (row_of q r) p) (cut w n (row_of q r) (S p)) in
       let weight h x := exp A (score h x - most h) in
       if (column <? heads * d)%nat then
         range (fun x => weight (column / d) x * item A s (row_of q r) (head (column / d)) x (column mod d))
       else if (column <? heads * d + heads)%nat then most (column - heads * d)%nat
       else range (weight (column - (heads * d + heads))%nat) |}.
Definition op_attention_merge (d n heads : nat) (x : value) : value :=
  {| width := (width x / (n * (d + 2)) * d)%nat; height := height x; row_of := row_of x;
     elt := fun r c =>
       let h := (c / d) mod heads in
       let part p column := elt x r ((c / d / heads * n + p) * part_cols d heads + column)%nat in
       let most p := part p (heads * d + h)%nat in
       let factor p := exp A (most p - greatest A most 0 n) in
       sum (fun p => factor p * part p (h * d + c mod d)%nat) n *
       over A (sum (fun p => factor p * part p (heads * d + heads + h)%nat) n) |}.
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
