(* Loops over lists that count as they go: what the checker is made of, and what their answers mean. *)
From Coq Require Import List Arith Bool Lia Wf_nat.
From Plow Require Export Map.
Import ListNotations.

Fixpoint all_from {A} (f : nat -> A -> bool) (i : nat) (l : list A) : bool :=
  match l with [] => true | a :: r => if f i a then all_from f (S i) r else false end.

Lemma all_from_sound : forall A (f : nat -> A -> bool) l i, all_from f i l = true ->
  forall j a, nth_error l j = Some a -> f (i + j) a = true.
Proof.
  induction l as [|b l IH]; intros i H j a E; [destruct j; discriminate|].
  cbn in H. destruct (f i b) eqn:F; [|discriminate]. destruct j as [|j]; cbn in E.
  - injection E as <-. now rewrite Nat.add_0_r.
  - rewrite Nat.add_succ_r. exact (IH (S i) H j a E).
Qed.

Lemma one_less : forall n, (n =? 0) = false -> n - 1 < n.
Proof. intros n Z. apply Nat.eqb_neq in Z. lia. Qed.
(* f holds of all numbers below n. *)
Fixpoint all_under (f : nat -> bool) (n : nat) (less : Acc lt n) {struct less} : bool :=
  match Sumbool.sumbool_of_bool (n =? 0) with
  | left _ => true
  | right Z => if f (n - 1) then all_under f (n - 1) (Acc_inv less (one_less n Z)) else false
  end.
Definition all_below (f : nat -> bool) (n : nat) : bool := all_under f n (lt_wf n).

Lemma all_under_is : forall f m n (less : Acc lt n), n <= m -> (all_under f n less = true <-> forall i, i < n -> f i = true).
Proof.
  intros f. induction m as [|m IH]; intros n [less] L; cbn [all_under]; destruct (Sumbool.sumbool_of_bool (n =? 0)) as [Z|Z];
    try (apply Nat.eqb_eq in Z; split; [intros; lia|reflexivity]); [pose proof (one_less n Z); lia|].
  generalize (one_less n Z). intro O. apply Nat.eqb_neq in Z. destruct (f (n - 1)) eqn:F.
  - rewrite IH by lia. split; intros H i I; [|apply H; lia]. destruct (Nat.eq_dec i (n - 1)) as [->|N]; [exact F|apply H; lia].
  - split; [discriminate|]. intro H. rewrite H in F by lia. discriminate.
Qed.
Lemma all_below_sound : forall f n, all_below f n = true -> forall i, i < n -> f i = true.
Proof. intros f n. exact (proj1 (all_under_is f n n (lt_wf n) (le_n n))). Qed.
Lemma all_below_complete : forall f n, (forall i, i < n -> f i = true) -> all_below f n = true.
Proof. intros f n. exact (proj2 (all_under_is f n n (lt_wf n) (le_n n))). Qed.

Lemma all_from_complete : forall A (f : nat -> A -> bool) l i, (forall j a, nth_error l j = Some a -> f (i + j) a = true) ->
  all_from f i l = true.
Proof.
  induction l as [|a l IH]; intros i H; [reflexivity|]. cbn. rewrite <- (Nat.add_0_r i) at 1. rewrite (H 0 a eq_refl).
  apply IH. intros j x J. rewrite <- (H (S j) x J). f_equal. lia.
Qed.

Fixpoint fold_from {A B} (f : nat -> A -> B -> B) (i : nat) (l : list A) (b : B) : B :=
  match l with [] => b | a :: r => fold_from f (S i) r (f i a b) end.

(* Lists by number. *)
Definition get {A} (k : nat) (m : M.t (list A)) : list A := match M.find k m with Some l => l | None => [] end.
Definition put {A} (k : nat) (a : A) (m : M.t (list A)) : M.t (list A) :=
  M.change k (fun l => a :: match l with Some l => l | None => [] end) m.

Lemma get_put : forall A k k' (a : A) m, get k (put k' a m) = if k =? k' then a :: get k m else get k m.
Proof.
  intros A k k' a m. unfold get, put. rewrite M.find_change.
  destruct (k =? k') eqn:E; [|reflexivity]. apply Nat.eqb_eq in E. now subst k'.
Qed.

Lemma get_empty : forall A k, get k (M.empty (list A)) = [].
Proof. reflexivity. Qed.

(* f holds of every number that the map knows, and its list. *)
Definition all_lists {A} (f : nat -> list A -> bool) (m : M.t (list A)) : bool :=
  forallb (fun kl => f (fst kl) (snd kl)) (M.elements m).

Lemma all_lists_sound : forall A (f : nat -> list A -> bool) m, all_lists f m = true ->
  forall k, get k m <> [] -> f k (get k m) = true.
Proof.
  intros A f m H k N. unfold all_lists in H. rewrite forallb_forall in H.
  unfold get in *. destruct (M.find k m) as [l|] eqn:F; [|congruence].
  exact (H _ (M.elements_all _ _ _ _ F)).
Qed.
