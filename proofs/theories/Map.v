(* Maps from numbers, as trees: a node holds number 0, the odd numbers 2q + 1 in one subtree as q, the even ones 2q + 2 in the other as q.
   Nothing is compared or balanced: a lookup takes as many steps as the number has digits. *)
From Coq Require Import List Arith Bool Lia Wf_nat.
Import ListNotations.

Module M.
Inductive t (A : Type) := Leaf | Node (h : option A) (l r : t A).
Arguments Leaf {A}. Arguments Node {A} h l r.

Definition empty (A : Type) : t A := Leaf.
Fixpoint find {A} (k : nat) (m : t A) : option A :=
  match m with
  | Leaf => None
  | Node h l r => if k =? 0 then h else if k mod 2 =? 1 then find (k / 2) l else find (k / 2 - 1) r
  end.

Definition here {A} (m : t A) : option A := match m with Leaf => None | Node h _ _ => h end.
Definition odds {A} (m : t A) : t A := match m with Leaf => Leaf | Node _ l _ => l end.
Definition evens {A} (m : t A) : t A := match m with Leaf => Leaf | Node _ _ r => r end.

Lemma halves : forall k, k = 2 * (k / 2) + k mod 2 /\ k mod 2 < 2.
Proof. intro k. split; [apply Nat.div_mod; lia|apply Nat.mod_upper_bound; lia]. Qed.
Lemma half_less : forall k, (k =? 0) = false -> k / 2 < k.
Proof. intros k Z. apply Nat.eqb_neq in Z. pose proof (halves k). lia. Qed.
Lemma half_less' : forall k, (k =? 0) = false -> k / 2 - 1 < k.
Proof. intros k Z. apply Nat.eqb_neq in Z. pose proof (halves k). lia. Qed.

(* What lies at k becomes f of it. (Recursion on Acc leaves no trace in OCaml; on a number, each step would make two closures.) *)
Fixpoint change_in {A} (k : nat) (f : option A -> A) (m : t A) (less : Acc lt k) {struct less} : t A :=
  match Sumbool.sumbool_of_bool (k =? 0) with
  | left _ => Node (Some (f (here m))) (odds m) (evens m)
  | right Z =>
      if k mod 2 =? 1 then Node (here m) (change_in (k / 2) f (odds m) (Acc_inv less (half_less k Z))) (evens m)
      else Node (here m) (odds m) (change_in (k / 2 - 1) f (evens m) (Acc_inv less (half_less' k Z)))
  end.
Definition change {A} (k : nat) (f : option A -> A) (m : t A) : t A := change_in k f m (lt_wf k).
Definition add {A} (k : nat) (v : A) (m : t A) : t A := change k (fun _ => v) m.

(* The numbers of a subtree are `first` and every `step`-th after it. *)
Fixpoint elements_in {A} (first step : nat) (m : t A) : list (nat * A) :=
  match m with
  | Leaf => []
  | Node h l r =>
      match h with Some v => [(first, v)] | None => [] end ++
      elements_in (first + step) (2 * step) l ++ elements_in (first + 2 * step) (2 * step) r
  end.
Definition elements {A} (m : t A) : list (nat * A) := elements_in 0 1 m.

Lemma find_change_in : forall A n k (f : option A -> A) m (less : Acc lt k) k', k < n ->
  find k' (change_in k f m less) = if k' =? k then Some (f (find k m)) else find k' m.
Proof.
  induction n as [|n IH]; intros k f m [less] k' L; [lia|]. cbn [change_in].
  pose proof (halves k) as [Hk Bk]. pose proof (halves k') as [Hk' Bk'].
  destruct (Sumbool.sumbool_of_bool (k =? 0)) as [Z|Z].
  { apply Nat.eqb_eq in Z. subst k. cbn [find]. destruct (k' =? 0) eqn:Z'; [now destruct m|].
    destruct m; cbn [find odds evens]; [now destruct (k' mod 2 =? 1)|now rewrite Z']. }
  generalize (half_less k Z) (half_less' k Z). intros L1 L2. apply Nat.eqb_neq in Z.
  destruct (k mod 2 =? 1) eqn:O; [apply Nat.eqb_eq in O|apply Nat.eqb_neq in O]; cbn [find];
    (destruct (k' =? 0) eqn:Z'; [apply Nat.eqb_eq in Z'; subst k'|apply Nat.eqb_neq in Z']).
  - rewrite (proj2 (Nat.eqb_neq 0 k)) by lia. now destruct m.
  - destruct (k' mod 2 =? 1) eqn:O'; [apply Nat.eqb_eq in O'|apply Nat.eqb_neq in O'].
    + rewrite IH by lia. replace (k' / 2 =? k / 2) with (k' =? k) by (apply eq_true_iff_eq; rewrite !Nat.eqb_eq; lia).
        destruct m; cbn [find odds]; [reflexivity|].
        rewrite (proj2 (Nat.eqb_neq k 0) Z), (proj2 (Nat.eqb_neq k' 0) Z'), O, O'. reflexivity.
    + replace (k' =? k) with false by (symmetry; apply Nat.eqb_neq; lia).
        destruct m; cbn [find evens]; [reflexivity|]. now rewrite (proj2 (Nat.eqb_neq k' 0) Z'), (proj2 (Nat.eqb_neq (k' mod 2) 1) O').
  - rewrite (proj2 (Nat.eqb_neq 0 k)) by lia. now destruct m.
  - destruct (k' mod 2 =? 1) eqn:O'; [apply Nat.eqb_eq in O'|apply Nat.eqb_neq in O'].
    + replace (k' =? k) with false by (symmetry; apply Nat.eqb_neq; lia).
        destruct m; cbn [find odds]; [reflexivity|]. now rewrite (proj2 (Nat.eqb_neq k' 0) Z'), O'.
    + rewrite IH by lia. replace (k' / 2 - 1 =? k / 2 - 1) with (k' =? k) by (apply eq_true_iff_eq; rewrite !Nat.eqb_eq; lia).
        destruct m; cbn [find evens]; [reflexivity|].
        rewrite (proj2 (Nat.eqb_neq k 0) Z), (proj2 (Nat.eqb_neq k' 0) Z'), (proj2 (Nat.eqb_neq (k mod 2) 1) O),
          (proj2 (Nat.eqb_neq (k' mod 2) 1) O'). reflexivity.
Qed.

Theorem find_change : forall A k (f : option A -> A) m k',
  find k' (change k f m) = if k' =? k then Some (f (find k m)) else find k' m.
Proof. intros. apply (find_change_in A (S k)). lia. Qed.
Theorem find_add : forall A k (v : A) m k', find k' (add k v m) = if k' =? k then Some v else find k' m.
Proof. intros. apply find_change. Qed.

Lemma elements_in_all : forall A (m : t A) first step k v, find k m = Some v -> In (first + step * k, v) (elements_in first step m).
Proof.
  induction m as [|h l IHl r IHr]; intros first step k v F; [discriminate|]. cbn [find] in F. cbn [elements_in].
  destruct (halves k) as [H B]. destruct (k =? 0) eqn:Z; [|destruct (k mod 2 =? 1) eqn:O].
  - apply Nat.eqb_eq in Z. subst k h. rewrite Nat.mul_0_r, Nat.add_0_r. now left.
  - apply Nat.eqb_eq in O. apply in_or_app; right. apply in_or_app; left.
    replace (first + step * k) with (first + step + 2 * step * (k / 2)); [now apply IHl|].
    replace k with (2 * (k / 2) + 1) at 2 by lia. ring.
  - apply Nat.eqb_neq in Z, O. apply in_or_app; right. apply in_or_app; right.
    replace (first + step * k) with (first + 2 * step + 2 * step * (k / 2 - 1)); [now apply IHr|].
    replace k with (2 * (k / 2 - 1) + 2) at 2 by lia. ring.
Qed.
Theorem elements_all : forall A (m : t A) k v, find k m = Some v -> In (k, v) (elements m).
Proof. intros A m k v F. replace k with (0 + 1 * k) by lia. now apply elements_in_all. Qed.
End M.
