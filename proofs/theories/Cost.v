(* The cost by which the rewriter chooses (src/rewrite/extract.h): the nodes of a graph cost what each costs, once however many read
   it, and waits in the longest chain cost besides. Shown: cheaper nodes and fewer waits never cost more, and the bound that the
   search prunes by is one. Costs are natural numbers here (say, picoseconds), the search's are float64. *)
From Coq Require Import List Arith Lia.
Import ListNotations.

(* A graph in an order in which every node comes after its inputs; an input is how far before its reader it stands (0: the one
   before it), and whether the reader waits for it. *)
Record node := { n_cost : nat; n_inputs : list (nat * bool) }.

Definition waits_of (w : bool) : nat := if w then 1 else 0.
(* Waits on the longest way to a node, of the chains of those before it, nearest first. *)
Definition chain_of (prior : list nat) (inputs : list (nat * bool)) : nat :=
  fold_right (fun iw m => Nat.max (nth (fst iw) prior 0 + waits_of (snd iw)) m) 0 inputs.
Fixpoint chains (prior : list nat) (graph : list node) : list nat :=
  match graph with [] => prior | n :: r => chains (chain_of prior (n_inputs n) :: prior) r end.

Definition longest (l : list nat) : nat := fold_right Nat.max 0 l.
Definition work (graph : list node) : nat := fold_right (fun n m => n_cost n + m) 0 graph.
Definition cost (wait : nat) (graph : list node) : nat := work graph + wait * longest (chains [] graph).

(* No dearer: each node costs no more, and waits for no more of what it reads. *)
Definition input_le (a b : nat * bool) : Prop := fst a = fst b /\ waits_of (snd a) <= waits_of (snd b).
Definition node_le (a b : node) : Prop := n_cost a <= n_cost b /\ Forall2 input_le (n_inputs a) (n_inputs b).
Definition chains_le (a b : list nat) : Prop := Forall2 le a b.

Lemma chains_le_nth : forall a b, chains_le a b -> forall i, nth i a 0 <= nth i b 0.
Proof. induction 1; intros [|i]; cbn; auto. Qed.

Lemma chain_monotone : forall a b, chains_le a b -> forall x y, Forall2 input_le x y -> chain_of a x <= chain_of b y.
Proof.
  intros a b L x y H. unfold chain_of in *. induction H as [|i j x y [E W] H IH]; cbn; [lia|].
  pose proof (chains_le_nth a b L (fst j)). rewrite E. lia.
Qed.

Lemma chains_monotone : forall x y, Forall2 node_le x y -> forall a b, chains_le a b -> chains_le (chains a x) (chains b y).
Proof.
  induction 1 as [|n m x y [_ I] H IH]; intros a b L; cbn; [exact L|].
  apply IH. constructor; [now apply chain_monotone|exact L].
Qed.

Lemma longest_monotone : forall a b, chains_le a b -> longest a <= longest b.
Proof. unfold longest. induction 1; cbn; lia. Qed.

Lemma work_monotone : forall x y, Forall2 node_le x y -> work x <= work y.
Proof. unfold work. induction 1 as [|n m x y [C _] H IH]; cbn; lia. Qed.

Theorem cost_monotone : forall wait wait' x y, wait <= wait' -> Forall2 node_le x y -> cost wait x <= cost wait' y.
Proof.
  intros wait wait' x y W H. unfold cost. pose proof (work_monotone x y H).
  pose proof (longest_monotone _ _ (chains_monotone x y H [] [] ltac:(constructor))). nia.
Qed.

(* A chain that a graph begins with is in it: leaving the end of a graph out makes it no dearer. *)
Lemma chains_grow : forall graph prior, longest prior <= longest (chains prior graph).
Proof.
  induction graph as [|n r IH]; intro prior; cbn [chains]; [lia|].
  specialize (IH (chain_of prior (n_inputs n) :: prior)). unfold longest in *. cbn in IH. lia.
Qed.

Lemma chains_app : forall x y prior, chains prior (x ++ y) = chains (chains prior x) y.
Proof. induction x as [|n x IH]; intros; cbn; auto. Qed.

Theorem part_costs_no_more : forall wait x y, cost wait x <= cost wait (x ++ y).
Proof.
  intros wait x y. unfold cost. rewrite chains_app. pose proof (chains_grow y (chains [] x)).
  assert (work x <= work (x ++ y)) by (unfold work; clear; induction x as [|n x IH]; cbn; lia). nia.
Qed.

(* The search. A class is a list of nodes that compute one value; a choice takes one of each class that it needs. What is known of every
   choice that may still come: which classes it needs, and how many waits its longest chain has at least. *)
Definition cheapest (c : list node) : nat :=
  match c with [] => 0 | n :: r => fold_right (fun m k => Nat.min (n_cost m) k) (n_cost n) r end.
Definition bound (wait : nat) (needed : list (list node)) (least_chain : nat) : nat :=
  fold_right (fun c m => cheapest c + m) 0 needed + wait * least_chain.

Lemma cheapest_least : forall c n, In n c -> cheapest c <= n_cost n.
Proof.
  intros [|m r] n I; [destruct I|]. cbn. revert I.
  assert (G : forall k, (fold_right (fun m k => Nat.min (n_cost m) k) k r <= k) /\
    forall n, In n r -> fold_right (fun m k => Nat.min (n_cost m) k) k r <= n_cost n).
  { intro k. induction r as [|a r [IH1 IH2]]; cbn; [split; [lia|tauto]|]. split; [lia|]. intros x [->|I]; [lia|specialize (IH2 x I); lia]. }
  destruct (G (n_cost m)) as [G1 G2]. intros [->|I]; [exact G1|auto].
Qed.

(* A graph that a choice makes: beside others it has a node of each needed class. *)
Theorem bound_is_a_bound : forall wait needed least_chain chosen others graph,
  Forall2 (fun c n => In n c) needed chosen -> work graph = work chosen + work others ->
  least_chain <= longest (chains [] graph) -> bound wait needed least_chain <= cost wait graph.
Proof.
  intros wait needed least chosen others graph H W L. unfold bound, cost. rewrite W.
  assert (fold_right (fun c m => cheapest c + m) 0 needed <= work chosen).
  { clear W L. unfold work. induction H as [|c n needed chosen I H IH]; cbn; [lia|]. pose proof (cheapest_least c n I). lia. }
  nia.
Qed.
