(* No deadlock: in every state that is reached some worker can move, and a step that runs needs a bounded number of moves. *)
From Coq Require Import List Arith Bool Lia.
From Plow Require Import Machine Invariant Reachable.
Import ListNotations.

Lemma search : forall n (P : nat -> Prop), (forall w, w < n -> P w \/ ~ P w) ->
  (exists w, w < n /\ P w) \/ (forall w, w < n -> ~ P w).
Proof.
  induction n as [|n IH]; intros P D; [right; intros; lia|].
  destruct (IH P) as [(w & L & H)|H]; [intros; apply D; lia|left; exists w; split; [lia|exact H]|].
  destruct (D n) as [H'|H']; [lia|left; exists n; split; [lia|exact H']|].
  right. intros w L. destruct (Nat.eq_dec w n) as [->|N]; [exact H'|]. apply H. lia.
Qed.

Lemma least : forall (f : nat -> nat) n (P : nat -> Prop), (forall w, w < n -> P w \/ ~ P w) ->
  (exists w, w < n /\ P w) -> exists w, w < n /\ P w /\ forall u, u < n -> P u -> f w <= f u.
Proof.
  intros f. induction n as [|n IH]; intros P D (w & L & H); [lia|].
  destruct (search n P) as [E|N]; [intros; apply D; lia| |].
  - destruct (IH P) as (m & Lm & Hm & Min); [intros; apply D; lia|exact E|].
    destruct (D n) as [Hn|Hn]; [lia| |].
    + destruct (le_lt_dec (f m) (f n)) as [C|C].
      * exists m. repeat split; auto. intros u Lu Hu. destruct (Nat.eq_dec u n) as [->|]; [exact C|]. apply Min; [lia|exact Hu].
      * exists n. repeat split; auto. intros u Lu Hu. destruct (Nat.eq_dec u n) as [->|]; [lia|].
        specialize (Min u). lia || (assert (f m <= f u) by (apply Min; [lia|exact Hu]); lia).
    + exists m. repeat split; auto. intros u Lu Hu. destruct (Nat.eq_dec u n) as [->|]; [contradiction|]. apply Min; [lia|exact Hu].
  - exists w. repeat split; auto. intros u Lu Hu.
    assert (w = n) by (destruct (Nat.eq_dec w n); [assumption|exfalso; apply (N w); [lia|exact H]]).
    assert (u = n) by (destruct (Nat.eq_dec u n); [assumption|exfalso; apply (N u); [lia|exact Hu]]). subst. lia.
Qed.

Section Progress.
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
Notation fine := (fine body workers program lines signals know wa pa).
Notation moves := (moves body program lines turns).
Notation runs := (runs body workers program lines turns).

Lemma rank_grows : forall e w p q, w < workers -> p <= q -> q < size (program e) w -> rank e w p <= rank e w q.
Proof.
  intros e w p q W L. induction L as [|q L IH]; intro S; [lia|].
  etransitivity; [apply IH; lia|].
  destruct (at_ (program e) w q) as [i|] eqn:A.
  - exact (ranks_grow (all_certified e) w q i W A).
  - unfold at_ in A. apply nth_error_None in A. unfold size in S. lia.
Qed.

Lemma someone_missing : forall s k, given signals s k < length (signals (done s) k) ->
  exists v q, In (v, q) (signals (done s) k) /\ progress s v <= q.
Proof.
  intros s k. unfold given. induction (signals (done s) k) as [|[v q] l IH]; cbn [filter length fst snd]; [lia|].
  destruct (q <? progress s v) eqn:T; cbn [length].
  - intro H. destruct IH as (v' & q' & I & L); [lia|]. exists v', q'. split; [now right|exact L].
  - intros _. exists v, q. apply Nat.ltb_ge in T. split; [now left|exact T].
Qed.

Definition unfinished (s : state) (w : nat) : Prop := place s w < size (program (done s)) w.

Lemma not_stuck : forall s, fine s -> (forall w, w < workers -> turn s w <= turns (step_of s w) w (place s w)) ->
  exists w a s', w < workers /\ moves s w a s'.
Proof.
  intros s F T.
  destruct (search workers (fun w => step_of s w <> done s)) as [(w & W & N)|Here].
  { intros w _. destruct (Nat.eq_dec (step_of s w) (done s)); tauto. }
  { exists w. do 2 eexists. split; [exact W|]. destruct (in_step F w W) as [[X _]|[X Y]]; [contradiction|].
    apply moves_next_step; [exact Y|lia]. }
  assert (E : forall w, w < workers -> step_of s w = done s).
  { intros w W. destruct (Nat.eq_dec (step_of s w) (done s)); [assumption|]. exfalso. now apply (Here w W). }
  pose proof (all_certified (done s)) as C. destruct (advances C) as [Wa _]. pose proof (advances_last C) as La.
  pose proof (not_advanced F) as Na. unfold progress in Na. rewrite (E _ Wa), Nat.eqb_refl in Na.
  destruct (least (fun w => rank (done s) w (place s w)) workers (unfinished s)) as (w & W & U & Min).
  { intros w _. unfold unfinished. destruct (lt_dec (place s w) (size (program (done s)) w)); tauto. }
  { exists (wa (done s)). split; [exact Wa|]. unfold unfinished. lia. }
  destruct (at_ (program (done s)) w (place s w)) as [i|] eqn:A.
  2: { unfold at_ in A. apply nth_error_None in A. unfold unfinished, size in U. lia. }
  exists w. specialize (T w W). rewrite <- (E w W) in A.
  destruct i as [k n|k|b| |].
  - destruct (le_lt_dec n (bank s (done s mod 3) k)) as [L|L].
    { do 2 eexists. split; [exact W|]. eapply moves_wait; [exact A|]. now rewrite (E w W). }
    exfalso. rewrite (E w W) in A. rewrite (bank_counts F), (waits_exact C w _ k n W A) in L.
    destruct (someone_missing s k L) as (v & q & I & Q).
    pose proof (waits_for_lower C w _ k n v q W A I) as R.
    apply (signals_all C) in I. destruct I as [V Av]. apply at_size in Av.
    unfold progress in Q. rewrite (E v V), Nat.eqb_refl in Q.
    specialize (Min v V). unfold unfinished in Min. specialize (Min ltac:(lia)). cbn in Min.
    pose proof (rank_grows (done s) v (place s v) q V Q Av). lia.
  - do 2 eexists. split; [exact W|]. now apply moves_signal with (c := k).
  - destruct (Nat.eq_dec (turn s w) (turns (step_of s w) w (place s w))) as [Q|Q].
    + do 2 eexists. split; [exact W|]. now apply moves_worked with (b := b).
    + do 2 eexists. split; [exact W|]. apply moves_act with (i := Work b); eauto. lia.
  - do 2 eexists. split; [exact W|]. now apply moves_clear.
  - destruct (Nat.eq_dec (turn s w) (turns (step_of s w) w (place s w))) as [Q|Q].
    + do 2 eexists. split; [exact W|]. now apply moves_advanced.
    + do 2 eexists. split; [exact W|]. apply moves_act with (i := Advance); auto. lia.
Qed.

Lemma turns_kept : forall t s, runs t s -> forall w, turn s w <= turns (step_of s w) w (place s w).
Proof.
  induction 1 as [|t s w a s' R IH W M]; intro v; [cbn; lia|].
  specialize (IH v).
  destruct M as [c n A L|c A|A|i A Hi Tn|b A Tn|A Tn|Pl D]; cbn; unfold Machine.set;
    destruct (v =? w) eqn:Q; try exact IH; try lia; apply Nat.eqb_eq in Q; subst v; lia.
Qed.

(* THEOREM. With all workers on the machine at once, no execution ever comes to a state in which none can move. *)
Theorem never_deadlocks : forall t s, runs t s -> exists w a s', w < workers /\ moves s w a s'.
Proof.
  intros t s R. apply not_stuck.
  - exact (fine_runs _ _ _ _ _ _ _ _ _ _ all_certified t s R).
  - intros w _. exact (turns_kept t s R w).
Qed.

(* THEOREM. In every state that is reached, while some worker is in step e: the counters of its bank are exactly the signals
   given in that step, so nothing of an earlier step is ever left in a bank, however many steps ran. *)
Theorem banks_hold_this_step : forall t s, runs t s -> forall w i, w < workers ->
  at_ (program (step_of s w)) w (place s w) = Some i -> forall k,
  bank s (step_of s w mod 3) k = length (filter (fun vq =>
    (step_of s (fst vq) =? step_of s w) && (snd vq <? place s (fst vq))) (signals (step_of s w) k)).
Proof.
  intros t s R w i W A k. pose proof (fine_runs _ _ _ _ _ _ _ _ _ _ all_certified t s R) as F.
  rewrite (in_current all_certified F W A). rewrite (bank_counts F). unfold given. f_equal.
  apply filter_ext. intros [v q]. cbn. unfold progress. now destruct (step_of s v =? done s).
Qed.

End Progress.
