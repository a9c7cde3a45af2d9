(* Each rewriting rule, by its own name: it holds over numbers that add and multiply as real ones do. That none is missing is
   checked in EveryRule.v, which is made from the rules. *)
From Coq Require Import List Arith Lia Ring.
From Plow Require Import Values Statements.

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
  hnf. intros. repeat split. intros r col. cbn. apply attend_by_scores. intros h p.
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

End Sound.
