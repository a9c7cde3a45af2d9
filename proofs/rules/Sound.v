(* Each rewriting rule, by its own name: it holds over numbers that add and multiply as real ones do. That none is missing is
   checked in EveryRule.v, which is made from the rules. *)
From Coq Require Import List Arith Lia Ring.
From Plow Require Import Values Statements.

(* Where a part lies among the columns. *)
Lemma div_of_part : forall a b m, b < m -> (a * m + b) / m = a.
Proof. intros a b m L. rewrite Nat.div_add_l, Nat.div_small by lia. lia. Qed.
Lemma mod_of_part : forall a b m, b < m -> (a * m + b) mod m = b.
Proof. intros a b m L. rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. reflexivity. Qed.
Lemma part_of_column : forall kv n p o cols, p < n -> o < cols ->
  ((kv * n + p) * cols + o) / cols / n = kv /\ (((kv * n + p) * cols + o) / cols) mod n = p /\ ((kv * n + p) * cols + o) mod cols = o.
Proof. intros. rewrite div_of_part, mod_of_part, div_of_part, mod_of_part by assumption. auto. Qed.

Section Sound.
Variable A : numbers.
Add Ring numbers_ring : (ring_laws A).
Notation num := (number A).
Notation "x + y" := (add A x y).
Notation "x * y" := (mul A x y).
Notation sum := (sum A).

Lemma sum_same : forall f g n, (forall i, i < n -> f i = g i) -> sum f n = sum g n.
Proof. intros f g n H. induction n as [|n IH]; [reflexivity|]. cbn. rewrite IH, H by (intros; auto with arith). reflexivity. Qed.
Lemma sum_times : forall f k n, sum (fun i => k * f i) n = k * sum f n.
Proof. intros f k n. induction n as [|n IH]; cbn; [ring|]. rewrite IH. ring. Qed.
Lemma sum_split : forall f m n, sum f (m + n)%nat = sum f m + sum (fun i => f (m + i)%nat) n.
Proof. intros f m n. induction n as [|n IH]; cbn; [rewrite Nat.add_0_r; ring|]. rewrite Nat.add_succ_r. cbn. rewrite IH. ring. Qed.

Lemma range_split : forall f b m e, b <= m <= e -> sum_range A f b m + sum_range A f m e = sum_range A f b e.
Proof.
  intros f b m e [L1 L2]. unfold sum_range. replace (e - b)%nat with ((m - b) + (e - m))%nat by lia. rewrite sum_split.
  f_equal. apply sum_same. intros i _. f_equal. lia.
Qed.
Lemma range_times : forall f g k b e, (forall i, f i = k * g i) -> sum_range A f b e = k * sum_range A g b e.
Proof. intros f g k b e H. unfold sum_range. rewrite <- sum_times. apply sum_same. auto. Qed.

(* Rules that only gather what is computed under another name, or choose rows before or after what works row by row. *)
Ltac by_definition := hnf; intros; subst; (reflexivity || (repeat split; intros; reflexivity)).

Theorem rope_kv_append : says_rope_kv_append A. Proof. by_definition. Qed.
Theorem norm_rope_kv_append : says_norm_rope_kv_append A. Proof. by_definition. Qed.
Theorem rope_attention : says_rope_attention A. Proof. by_definition. Qed.
Theorem norm_rope_attention : says_norm_rope_attention A. Proof. by_definition. Qed.
Theorem gather_norm : says_gather_norm A. Proof. by_definition. Qed.
Theorem gather_linear : says_gather_linear A. Proof. by_definition. Qed.
Theorem gather_bias : says_gather_bias A. Proof. by_definition. Qed.
Theorem gather_add : says_gather_add A. Proof. by_definition. Qed.
Theorem gather_glu : says_gather_glu A. Proof. by_definition. Qed.
Theorem gather_scale : says_gather_scale A. Proof. by_definition. Qed.
Theorem gather_soft_cap : says_gather_soft_cap A. Proof. by_definition. Qed.
Theorem gather_rope : says_gather_rope A. Proof. by_definition. Qed.
Theorem gather_attention : says_gather_attention A. Proof. by_definition. Qed.
Theorem linear_bias : says_linear_bias A. Proof. by_definition. Qed.
Theorem linear_add : says_linear_add A. Proof. by_definition. Qed.
Theorem glu_linear : says_glu_linear A. Proof. by_definition. Qed.
Theorem norm_linear : says_norm_linear A. Proof. by_definition. Qed.
Theorem norm_linear_bias : says_norm_linear_bias A. Proof. by_definition. Qed.
Theorem norm_glu_linear : says_norm_glu_linear A. Proof. by_definition. Qed.
Theorem norm_rope : says_norm_rope A. Proof. by_definition. Qed.
Theorem norm_add : says_norm_add A. Proof. by_definition. Qed.

Lemma range_same : forall f g b e, (forall i, f i = g i) -> sum_range A f b e = sum_range A g b e.
Proof. intros f g b e H. unfold sum_range. apply sum_same. auto. Qed.
Lemma attend_by_scores : forall d w z i a b s c, (forall h p, a h p = b h p) -> attend A d w z i a s c = attend A d w z i b s c.
Proof.
  intros d w z i a b s c H. unfold attend. f_equal; [|f_equal]; apply range_same; intro p; rewrite H; reflexivity.
Qed.

(* Rules of arithmetic. *)
Theorem add_commute : says_add_commute A.
Proof. hnf. intros x y (W & H & R). repeat split; cbn; auto. intros. ring. Qed.

Theorem add_associate : says_add_associate A.
Proof. hnf. intros. repeat split. intros. cbn. ring. Qed.

Theorem fold_norm_offset : says_fold_norm_offset A.
Proof. hnf. intros. repeat split. intros. cbn. ring. Qed.

Theorem scale_one : says_scale_one A.
Proof. hnf. intros f x ->. repeat split. intros. cbn. ring. Qed.

Theorem scale_scale : says_scale_scale A.
Proof. hnf. intros. repeat split. intros. cbn. ring. Qed.

Theorem scale_attention : says_scale_attention A.
Proof.
  hnf. intros. repeat split. intros r col. cbn [op_attention elt map_of op_scale row_of]. apply attend_by_scores. intros h p.
  unfold scores. cbn [elt map_of op_scale row_of].
  rewrite (sum_same _ (fun j => v_f * (elt A v_q r (h * v_d + j)%nat * key A v_s (row_of A v_q r) h p j))) by (intros; ring).
  rewrite sum_times. ring.
Qed.

Theorem scale_rope : says_scale_rope A.
Proof.
  hnf. intros. repeat split. intros r c. cbn. repeat match goal with |- context [if ?b then _ else _] => destruct b end; ring.
Qed.

Theorem scale_linear : says_scale_linear A.
Proof.
  hnf. intros. repeat split. intros r c. cbn -[sum_range].
  rewrite (range_times (fun k => elt A v_x r k * v_f * elt A v_w c k) (fun k => elt A v_x r k * elt A v_w c k) v_f) by (intros; ring).
  ring.
Qed.

Theorem scale_norm : says_scale_norm A.
Proof.
  hnf. intros x f g e o n e' Pf Ee. repeat split. intros r c. cbn.
  set (m := over_count A n * sum (fun j => elt A x r (c / n * n + j)%nat * elt A x r (c / n * n + j)%nat) n).
  assert (E : over_count A n * sum (fun j => elt A x r (c / n * n + j)%nat * f * (elt A x r (c / n * n + j)%nat * f)) n + e = f * f * (m + e')).
  { rewrite (sum_same _ (fun j => (f * f) * (elt A x r (c / n * n + j)%nat * elt A x r (c / n * n + j)%nat))) by (intros; ring).
    rewrite sum_times, <- Ee. unfold m. ring. }
  rewrite E, <- (over_root_of_square A f (m + e') Pf). ring.
Qed.

(* A product in parts along its inner dimension. *)
Theorem split_k : says_split_k A.
Proof. hnf. intros. repeat split. intros r c. cbn. symmetry. apply range_split. lia. Qed.

Theorem split_k_more : says_split_k_more A.
Proof.
  hnf. intros. repeat split. intros i c. cbn.
  match goal with H : _ <= _ <= _ |- _ => rewrite <- (range_split _ _ _ _ H) end. ring.
Qed.

Theorem split_heads : says_split_heads A.
Proof. hnf. intros. repeat split. intros r col. cbn. symmetry. apply range_split. cbn in *. lia. Qed.

(* Attention in parts of the positions. *)
Section Parts.
Variables w n i : nat.
Hypothesis some : 0 < n.

Lemma cut_first : cut A w n i 0 = begin_of A w i.
Proof.
  unfold cut. rewrite Nat.mul_0_r, Nat.div_0_l, Nat.add_0_r by lia.
  pose proof (Nat.mul_div_le (begin_of A w i) 64). lia.
Qed.

Lemma begin_before_end : begin_of A w i <= end_of A i.
Proof. unfold begin_of. destruct (w =? 0); lia. Qed.

Lemma cut_last : cut A w n i n = end_of A i.
Proof.
  unfold cut. rewrite Nat.div_mul by lia.
  pose proof begin_before_end. pose proof (Nat.mul_succ_div_gt (end_of A i - 1) 64).
  assert (begin_of A w i / 64 <= S ((end_of A i - 1) / 64)) by (apply Nat.div_le_upper_bound; lia).
  unfold end_of in *. lia.
Qed.

Lemma cut_grows : forall p, cut A w n i p <= cut A w n i (S p).
Proof.
  intro p. unfold cut.
  set (units := (S ((end_of A i - 1) / 64) - begin_of A w i / 64)%nat).
  assert ((units * p / n <= units * S p / n)%nat) by (apply Nat.div_le_mono; nia).
  lia.
Qed.

Lemma cuts_grow : forall p, cut A w n i 0 <= cut A w n i p.
Proof. induction p as [|p IH]; [lia|]. pose proof (cut_grows p). lia. Qed.

(* The parts' sums are the whole's. *)
Lemma sum_of_parts : forall f m,
  sum (fun p => sum_range A f (cut A w n i p) (cut A w n i (S p))) m = sum_range A f (cut A w n i 0) (cut A w n i m).
Proof.
  intros f m. induction m as [|m IH].
  - cbn. unfold sum_range. rewrite Nat.sub_diag. reflexivity.
  - cbn [Values.sum]. rewrite IH. apply range_split. split; [apply cuts_grow|apply cut_grows].
Qed.

(* Whatever is subtracted from the scores of each part and in the end, it is a common factor. *)
Lemma parts_scaled : forall score most last f,
  sum (fun p => exp A (sub A (most p) last) *
                sum_range A (fun x => exp A (sub A (score x) (most p)) * f x) (cut A w n i p) (cut A w n i (S p))) n =
  exp A (opp A last) * sum_range A (fun x => exp A (score x) * f x) (begin_of A w i) (end_of A i).
Proof.
  intros score most last f. rewrite <- cut_first, <- cut_last, <- sum_of_parts, <- sum_times. apply sum_same. intros p _.
  transitivity (sum_range A (fun x => exp A (sub A (most p) last) * (exp A (sub A (score x) (most p)) * f x))
    (cut A w n i p) (cut A w n i (S p))).
  - symmetry. apply range_times. reflexivity.
  - apply range_times. intro x. cbv beta.
    assert (E : exp A (sub A (most p) last) * exp A (sub A (score x) (most p)) = exp A (opp A last) * exp A (score x)).
    { rewrite <- !exp_of_sum. f_equal. ring. }
    transitivity (exp A (sub A (most p) last) * exp A (sub A (score x) (most p)) * f x); [ring|]. rewrite E. ring.
Qed.

Lemma common_factor : forall a x y, exp A a * x * over A (exp A a * y) = x * over A y.
Proof.
  intros a x y. rewrite over_product.
  replace (exp A a * x * (over A (exp A a) * over A y)) with (exp A a * over A (exp A a) * (x * over A y)) by ring.
  rewrite over_exp. ring.
Qed.
End Parts.

Lemma merge_of_parts : forall n d w c z q s, 0 < n -> fits_cache A d q s ->
  same A (op_attention A d w c z q s)
    (op_attention_merge A d n (width A q / cache_width A s) (op_attention_part A d w c z n q s)).
Proof.
  intros n d w c z q s Hn (Hd & (heads & Hw) & Hg). set (g := width A q / cache_width A s) in *.
  split; [|split; [|split]]; try reflexivity.
  { cbn [op_attention op_attention_merge op_attention_part map_of width]. rewrite Hw, Nat.div_mul, Nat.div_mul by nia. reflexivity. }
  intros r col. unfold op_attention, op_attention_merge. cbn [elt map_of].
  set (i := row_of A q r). set (h := (col / d) mod g). set (kv := col / d / g).
  assert (Lh : h < g) by (apply Nat.mod_upper_bound; lia).
  assert (Lc : col mod d < d) by (apply Nat.mod_upper_bound; lia).
  assert (Eh : (kv * g + h)%nat = col / d) by (unfold kv, h; pose proof (Nat.div_mod (col / d) g); lia).
  set (score := fun x => bend A z (scores A d c q s r (col / d) x)).
  set (most := fun p => greatest A score (cut A w n i p) (cut A w n i (S p))).
  set (x := op_attention_part A d w c z n q s).
  assert (Output : forall p, p < n -> elt A x r ((kv * n + p) * part_cols d g + (h * d + col mod d))%nat =
    sum_range A (fun y => exp A (sub A (score y) (most p)) * item A s i (col / d) y (col mod d)) (cut A w n i p) (cut A w n i (S p))).
  { intros p Lp. assert (Lo : (h * d + col mod d < part_cols d g)%nat) by (unfold part_cols; nia).
    unfold x, op_attention_part. cbn [elt]. fold g. destruct (part_of_column kv n p _ _ Lp Lo) as (-> & -> & ->).
    assert (T : (h * d + col mod d <? g * d)%nat = true) by (apply Nat.ltb_lt; nia). rewrite T.
    rewrite div_of_part, mod_of_part by assumption. rewrite Eh. reflexivity. }
  assert (Most : forall p, p < n -> elt A x r ((kv * n + p) * part_cols d g + (g * d + h))%nat = most p).
  { intros p Lp. assert (Lo : (g * d + h < part_cols d g)%nat) by (unfold part_cols; nia).
    unfold x, op_attention_part. cbn [elt]. fold g. destruct (part_of_column kv n p _ _ Lp Lo) as (-> & -> & ->).
    assert (T : (g * d + h <? g * d)%nat = false) by (apply Nat.ltb_ge; lia). rewrite T.
    assert (U : (g * d + h <? g * d + g)%nat = true) by (apply Nat.ltb_lt; lia). rewrite U.
    replace (g * d + h - g * d)%nat with h by lia. rewrite Eh. reflexivity. }
  assert (Total : forall p, p < n -> elt A x r ((kv * n + p) * part_cols d g + (g * d + g + h))%nat =
    sum_range A (fun y => exp A (sub A (score y) (most p))) (cut A w n i p) (cut A w n i (S p))).
  { intros p Lp. assert (Lo : (g * d + g + h < part_cols d g)%nat) by (unfold part_cols; nia).
    unfold x, op_attention_part. cbn [elt]. fold g. destruct (part_of_column kv n p _ _ Lp Lo) as (-> & -> & ->).
    assert (T : (g * d + g + h <? g * d)%nat = false) by (apply Nat.ltb_ge; lia). rewrite T.
    assert (U : (g * d + g + h <? g * d + g)%nat = false) by (apply Nat.ltb_ge; lia). rewrite U.
    replace (g * d + g + h - (g * d + g))%nat with h by lia. rewrite Eh. reflexivity. }
  generalize (greatest A (fun p => elt A x r ((kv * n + p) * part_cols d g + (g * d + h))%nat) 0 n). intro last.
  assert (Above : sum (fun p => exp A (sub A (elt A x r ((kv * n + p) * part_cols d g + (g * d + h))%nat) last) *
                                elt A x r ((kv * n + p) * part_cols d g + (h * d + col mod d))%nat) n =
    exp A (opp A last) * sum_range A (fun y => exp A (score y) * item A s i (col / d) y (col mod d)) (begin_of A w i) (end_of A i)).
  { eapply eq_trans; [|apply (parts_scaled w n i Hn score most last (fun y => item A s i (col / d) y (col mod d)))].
    apply sum_same. intros p Lp. rewrite Output, Most by exact Lp. reflexivity. }
  assert (Below : sum (fun p => exp A (sub A (elt A x r ((kv * n + p) * part_cols d g + (g * d + h))%nat) last) *
                                elt A x r ((kv * n + p) * part_cols d g + (g * d + g + h))%nat) n =
    exp A (opp A last) * sum_range A (fun y => exp A (score y) * one A) (begin_of A w i) (end_of A i)).
  { eapply eq_trans; [|apply (parts_scaled w n i Hn score most last (fun _ => one A))].
    apply sum_same. intros p Lp. rewrite Total, Most by exact Lp. f_equal. apply range_same. intro y. ring. }
  rewrite Above, Below, common_factor. unfold attend. fold i. f_equal. f_equal. apply range_same. intro y. unfold score. ring.
Qed.

Theorem split_attention_2 : says_split_attention_2 A. Proof. hnf. intros. apply merge_of_parts; [lia|assumption]. Qed.
Theorem split_attention_4 : says_split_attention_4 A. Proof. hnf. intros. apply merge_of_parts; [lia|assumption]. Qed.
Theorem split_attention_8 : says_split_attention_8 A. Proof. hnf. intros. apply merge_of_parts; [lia|assumption]. Qed.
Theorem split_attention_16 : says_split_attention_16 A. Proof. hnf. intros. apply merge_of_parts; [lia|assumption]. Qed.
Theorem split_attention_32 : says_split_attention_32 A. Proof. hnf. intros. apply merge_of_parts; [lia|assumption]. Qed.

End Sound.
