(* Loops over lists that count as they go: what the checker is made of, and what their answers mean. *)
From Coq Require Import List SetoidList Arith Bool Lia FMapAVL OrderedTypeEx.
Import ListNotations.
Module M := FMapAVL.Make(Nat_as_OT).

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

(* f holds of all numbers below n. *)
Fixpoint all_below (f : nat -> bool) (n : nat) : bool :=
  match n with 0 => true | S m => if f m then all_below f m else false end.

Lemma all_below_sound : forall f n, all_below f n = true -> forall i, i < n -> f i = true.
Proof.
  induction n as [|n IH]; intros H i L; [lia|]. cbn in H. destruct (f n) eqn:F; [|discriminate].
  destruct (Nat.eq_dec i n) as [->|N]; [exact F|]. apply IH; [exact H|lia].
Qed.

Lemma all_from_complete : forall A (f : nat -> A -> bool) l i, (forall j a, nth_error l j = Some a -> f (i + j) a = true) ->
  all_from f i l = true.
Proof.
  induction l as [|a l IH]; intros i H; [reflexivity|]. cbn. rewrite <- (Nat.add_0_r i) at 1. rewrite (H 0 a eq_refl).
  apply IH. intros j x J. rewrite <- (H (S j) x J). f_equal. lia.
Qed.
Lemma all_below_complete : forall f n, (forall i, i < n -> f i = true) -> all_below f n = true.
Proof. induction n as [|n IH]; intro H; [reflexivity|]. cbn. rewrite (H n) by lia. apply IH. auto. Qed.

Fixpoint fold_from {A B} (f : nat -> A -> B -> B) (i : nat) (l : list A) (b : B) : B :=
  match l with [] => b | a :: r => fold_from f (S i) r (f i a b) end.

(* Lists by number. *)
Definition get {A} (k : nat) (m : M.t (list A)) : list A := match M.find k m with Some l => l | None => [] end.
Definition put {A} (k : nat) (a : A) (m : M.t (list A)) : M.t (list A) := M.add k (a :: get k m) m.

Lemma get_put : forall A k k' (a : A) m, get k (put k' a m) = if k =? k' then a :: get k m else get k m.
Proof.
  intros A k k' a m. unfold get at 1, put. destruct (k =? k') eqn:E.
  - apply Nat.eqb_eq in E. subst k'. rewrite (M.find_1 (M.add_1 m (a :: get k m) eq_refl)). reflexivity.
  - apply Nat.eqb_neq in E. unfold get.
    destruct (M.find k (M.add k' (a :: match M.find k' m with Some l => l | None => [] end) m)) as [l|] eqn:F.
    + apply M.find_2 in F. apply M.add_3 in F; [|now intro; apply E]. now rewrite (M.find_1 F).
    + destruct (M.find k m) as [l|] eqn:G; [|reflexivity]. exfalso.
      apply M.find_2 in G. apply (M.add_2 (x := k') (a :: match M.find k' m with Some l => l | None => [] end)) in G; [|now intro; apply E].
      apply M.find_1 in G. congruence.
Qed.

Lemma get_empty : forall A k, get k (M.empty (list A)) = [].
Proof.
  intros A k. unfold get. destruct (M.find k (M.empty (list A))) as [l|] eqn:F; [|reflexivity].
  apply M.find_2 in F. exfalso. exact (M.empty_1 F).
Qed.

(* f holds of every number that the map knows, and its list. *)
Definition all_lists {A} (f : nat -> list A -> bool) (m : M.t (list A)) : bool :=
  forallb (fun kl => f (fst kl) (snd kl)) (M.elements m).

Lemma all_lists_sound : forall A (f : nat -> list A -> bool) m, all_lists f m = true ->
  forall k, get k m <> [] -> f k (get k m) = true.
Proof.
  intros A f m H k N. unfold all_lists in H. rewrite forallb_forall in H.
  unfold get in *. destruct (M.find k m) as [l|] eqn:F; [|congruence].
  apply M.find_2, M.elements_1, InA_alt in F. destruct F as ((k', l') & E & I). 
  specialize (H _ I). cbn in *. destruct E as [E1 E2]. cbn in E1, E2. subst. exact H.
Qed.
