(* Every step ends: as long as the work of a packet is finite, so many moves bring the machine past any given step, whoever
   makes them. *)
From Coq Require Import List Arith Bool Lia.
From Plow Require Import Machine Invariant Reachable History.
Import ListNotations.

Definition sum (f : nat -> nat) (n : nat) : nat := list_sum (map f (seq 0 n)).

Lemma sum_next : forall f n, sum f (S n) = sum f n + f n.
Proof. intros f n. unfold sum. rewrite seq_S, map_app, list_sum_app. cbn. lia. Qed.
Lemma sum_same : forall f g n, (forall i, i < n -> f i = g i) -> sum f n = sum g n.
Proof. intros f g n H. induction n as [|n IH]; [reflexivity|]. rewrite !sum_next, IH, H by (intros; auto with arith). reflexivity. Qed.
Lemma sum_most : forall f g n, (forall i, i < n -> f i <= g i) -> sum f n <= sum g n.
Proof.
  intros f g n H. induction n as [|n IH]; [reflexivity|]. rewrite !sum_next.
  specialize (IH ltac:(intros; auto with arith)). specialize (H n ltac:(lia)). lia.
Qed.
Lemma sum_one_more : forall f g n w, w < n -> g w = S (f w) -> (forall i, i <> w -> g i = f i) -> sum g n = S (sum f n).
Proof.
  intros f g n w L E O. induction n as [|n IH]; [lia|]. rewrite !sum_next. destruct (Nat.eq_dec w n) as [->|N].
  - rewrite E. rewrite (sum_same g f n) by (intros i Hi; apply O; lia). lia.
  - rewrite IH by lia. rewrite (O n) by lia. lia.
Qed.
Lemma sum_grows : forall f n m, n <= m -> sum f n <= sum f m.
Proof. intros f n m L. induction L as [|m L IH]; [reflexivity|]. rewrite sum_next. lia. Qed.

Section Ending.
Variable body : Type.
Variable workers : nat.
Variable program : nat -> code body.
Variable lines : nat -> nat.
Variable turns : nat -> nat -> nat -> nat.
Variable signals : nat -> nat -> list (nat * nat).
Variable know : nat -> nat -> nat -> nat -> nat.
Variable rank : nat -> nat -> nat -> nat.
Variables wa pa : nat -> nat.
Hypothesis all_certified :
  forall e, certified body workers (program e) (lines e) (signals e) (know e) (rank e) (wa e) (pa e).
Notation moves := (moves body program lines turns).
Notation runs := (runs body workers program lines turns).

(* Executions with their number of moves. *)
Inductive runs_in : nat -> list action -> state -> Prop :=
| in_none : runs_in 0 [] initial
| in_more : forall n t s w a s', runs_in n t s -> w < workers -> moves s w a s' ->
    runs_in (S n) (t ++ match a with Some x => [x] | None => [] end) s'.

Lemma runs_in_runs : forall n t s, runs_in n t s -> runs t s.
Proof. induction 1; [constructor|]. eapply runs_on; eauto. Qed.

(* How many moves the instruction at a place takes, a queue takes, and a worker has made. *)
Definition cost (e w p : nat) : nat :=
  match at_ (program e) w p with Some (Work _) | Some Advance => S (turns e w p) | _ => 1 end.
Definition queue_cost (w e : nat) : nat := S (sum (cost e w) (size (program e) w)).
Definition spent (s : state) (w : nat) : nat :=
  sum (queue_cost w) (step_of s w) + sum (cost (step_of s w) w) (place s w) + turn s w.
Definition spent_by_all (s : state) : nat := sum (spent s) workers.

(* So many moves all workers together make up to the end of step e. *)
Definition budget (e : nat) : nat := sum (fun w => sum (queue_cost w) (S e)) workers.

Lemma one_move : forall t s w a s', runs t s -> w < workers -> moves s w a s' -> spent_by_all s' = S (spent_by_all s).
Proof.
  intros t s w a s' R W M. destruct (history_runs _ _ _ _ _ t s R w) as [_ T].
  apply (sum_one_more (spent s) (spent s') workers w W).
  - unfold spent.
    assert (Idle : forall i, at_ (program (step_of s w)) w (place s w) = Some i -> (forall b, i <> Work b) -> i <> Advance ->
      turn s w = 0 /\ cost (step_of s w) w (place s w) = 1).
    { intros i A N1 N2. split.
      - destruct (turn s w) eqn:Q; [reflexivity|]. exfalso. destruct T as (j & A' & J); [lia|]. rewrite A in A'. injection A' as <-.
        destruct J as [[b ->]| ->]; [exact (N1 b eq_refl)|exact (N2 eq_refl)].
      - unfold cost. rewrite A. destruct i; auto; [exfalso; exact (N1 b eq_refl)|exfalso; exact (N2 eq_refl)]. }
    destruct M as [c n A L|c A|A|i A Hi Tn|b A Tn|A Tn|Pl D]; cbn [goes_on step_of place turn]; rewrite !set_eq.
    + destruct (Idle _ A) as [I1 I2]; try discriminate. rewrite sum_next. lia.
    + destruct (Idle _ A) as [I1 I2]; try discriminate. rewrite sum_next. lia.
    + destruct (Idle _ A) as [I1 I2]; try discriminate. rewrite sum_next. lia.
    + lia.
    + rewrite sum_next. unfold cost at 2. rewrite A. lia.
    + rewrite sum_next. unfold cost at 2. rewrite A. lia.
    + assert (turn s w = 0) as ->.
      { destruct (turn s w) eqn:X; [reflexivity|]. destruct T as (j & A & _); [lia|]. apply at_size in A. lia. }
      rewrite sum_next. unfold queue_cost at 2. rewrite <- Pl. cbn. lia.
  - intros u N. unfold spent. destruct M; cbn [goes_on step_of place turn]; rewrite ?set_ne by exact N; reflexivity.
Qed.

Lemma moves_counted : forall n t s, runs_in n t s -> spent_by_all s = n.
Proof.
  induction 1 as [|n t s w a s' R IH W M].
  - assert (Z : forall k, sum (spent initial) k = 0) by (induction k as [|k IH]; [reflexivity|rewrite sum_next, IH; reflexivity]).
    apply Z.
  - rewrite (one_move t s w a s' (runs_in_runs _ _ _ R) W M). now rewrite IH.
Qed.

Lemma turn_within : forall t s, runs t s -> forall w, at_ (program (step_of s w)) w (place s w) <> None \/ turn s w = 0.
Proof.
  intros t s R w. destruct (history_runs _ _ _ _ _ t s R w) as [_ T].
  destruct (turn s w) as [|k] eqn:Q; [now right|]. left. unfold at_work in T. rewrite Q in T. destruct T as (i & A & _); [lia|]. congruence.
Qed.

(* THEOREM. After more moves than the budget of step e the machine is past it: e + 1 steps at least are done. *)
Theorem steps_end : forall n t s, runs_in n t s ->
  (forall w, turn s w <= turns (step_of s w) w (place s w)) -> forall e, budget e < n -> e < done s.
Proof.
  intros n t s R K e B. pose proof (runs_in_runs _ _ _ R) as R'.
  destruct (le_lt_dec (done s) e) as [L|L]; [exfalso|exact L].
  rewrite <- (moves_counted n t s R) in B.
  enough (spent_by_all s <= budget e) by lia.
  apply sum_most. intros w W. pose proof (fine_runs _ _ _ _ _ _ _ _ _ _ all_certified t s R') as F.
  assert (P : step_of s w <= e /\ place s w <= size (program (step_of s w)) w).
  { destruct (in_step F w W) as [[E P]|[E P]]; [rewrite <- E in P|]; lia. }
  destruct P as [E P].
  transitivity (sum (queue_cost w) (S (step_of s w))); [|apply sum_grows; lia].
  rewrite sum_next. unfold spent.
  change (queue_cost w (step_of s w)) with (S (sum (cost (step_of s w) w) (size (program (step_of s w)) w))).
  destruct (turn_within t s R' w) as [A|A].
  - destruct (at_ (program (step_of s w)) w (place s w)) as [i|] eqn:Q; [|congruence]. pose proof (at_size _ _ _ _ Q) as Sz.
    pose proof (sum_grows (cost (step_of s w) w) (S (place s w)) _ Sz) as G. rewrite sum_next in G.
    destruct (history_runs _ _ _ _ _ t s R' w) as [_ T].
    destruct (turn s w) as [|k] eqn:Tk; [lia|]. destruct T as (j & A' & J); [lia|].
    specialize (K w). rewrite Tk in K. unfold cost at 2 in G. rewrite A' in G. destruct J as [[b ->]| ->]; lia.
  - rewrite A. pose proof (sum_grows (cost (step_of s w) w) _ _ P). lia.
Qed.

End Ending.
