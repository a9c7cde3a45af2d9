(* Every state that the machine reaches is fine: counters say exactly what was given, banks are clear when their turn comes, and
   what a worker is promised to know is so. *)
From Coq Require Import ZArith ZifyNat List Arith Bool Lia.
From Plow Require Import Machine Invariant.
Import ListNotations.
Open Scope nat_scope.

Section Reachable.
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
Notation given := (given signals).
Notation moves := (moves body program lines turns).
Notation runs := (runs body workers program lines turns).

Lemma went_goes_on : forall s w, went_on s (goes_on s w) w.
Proof.
  intros s w. split; cbn; auto; [apply set_same|]. intros u N. now apply set_other.
Qed.

Lemma fine_goes_on : forall s w i, fine s -> w < workers ->
  at_ (program (done s)) w (place s w) = Some i -> step_of s w = done s ->
  (forall k, i <> Signal k) -> i <> Clear -> i <> Advance ->
  (forall k n, i = Wait k n -> n <= bank s (done s mod 3) k) -> fine (goes_on s w).
Proof.
  intros s w i F W A E NS NC NA M. pose proof (went_goes_on s w) as G.
  split.
  - exact (in_step_on all_certified F W G A E).
  - intro k. rewrite (given_on all_certified k F W G A E).
    rewrite (went_done G). cbn [goes_on bank]. rewrite (bank_counts F).
    destruct i; try lia. exfalso. now apply (NS c).
  - intro k. apply (bank_next_clear F).
  - intros k L. now apply (bank_last_bounded F).
  - intros v p V C P k. apply (bank_last_cleared F v p V C).
    destruct (Nat.eq_dec v w) as [->|N]; [|now rewrite (progress_other G N) in P].
    destruct (progress_own G E) as [Po Pn]. rewrite Pn in P. rewrite Po.
    assert (p <> place s w) by (intros ->; cbn in C; congruence). lia.
  - exact (knows_on all_certified F W G A E M).
  - exact (not_advanced_on all_certified F W G A E NA).
Qed.

Lemma fine_signal : forall s w c, fine s -> w < workers ->
  at_ (program (done s)) w (place s w) = Some (Signal c) -> step_of s w = done s ->
  fine {| step_of := step_of s; place := set (place s) w (S (place s w)); turn := set (turn s) w 0;
          bank := set (bank s) (done s mod 3) (set (bank s (done s mod 3)) c (S (bank s (done s mod 3) c)));
          done := done s |}.
Proof.
  intros s w c F W A E.
  match goal with |- Invariant.fine _ _ _ _ _ _ _ _ ?x => set (s' := x) end.
  assert (G : went_on s s' w) by (split; cbn; auto; [apply set_same|intros u N; now apply set_other]).
  destruct (banks_differ (done s)) as (B1 & B2 & _).
  split.
  - exact (in_step_on all_certified F W G A E).
  - intro k. rewrite (given_on all_certified k F W G A E).
    cbn. rewrite set_same. unfold set. rewrite Nat.eqb_sym. destruct (c =? k) eqn:Q.
    + apply Nat.eqb_eq in Q. subst k. rewrite (bank_counts F). lia.
    + rewrite (bank_counts F). lia.
  - intro k. cbn. rewrite set_other by exact B1. apply (bank_next_clear F).
  - intros k L. cbn. rewrite set_other by exact B2. now apply (bank_last_bounded F).
  - intros v p V C P k. cbn. rewrite set_other by exact B2. apply (bank_last_cleared F v p V C).
    destruct (Nat.eq_dec v w) as [->|N]; [|now rewrite (progress_other G N) in P].
    destruct (progress_own G E) as [Po Pn]. rewrite Pn in P. rewrite Po.
    assert (p <> place s w) by (intros ->; cbn in C; congruence). lia.
  - apply (knows_on all_certified F W G A E). discriminate.
  - apply (not_advanced_on all_certified F W G A E). discriminate.
Qed.

Lemma fine_clear : forall s w, fine s -> w < workers ->
  at_ (program (done s)) w (place s w) = Some Clear -> step_of s w = done s ->
  fine {| step_of := step_of s; place := set (place s) w (S (place s w)); turn := set (turn s) w 0;
          bank := set (bank s) ((done s + 2) mod 3)
                    (cleared (counters_before lines (done s)) (bank s ((done s + 2) mod 3)));
          done := done s |}.
Proof.
  intros s w F W A E.
  match goal with |- Invariant.fine _ _ _ _ _ _ _ _ ?x => set (s' := x) end.
  assert (G : went_on s s' w) by (split; cbn; auto; [apply set_same|intros u N; now apply set_other]).
  destruct (banks_differ (done s)) as (B1 & B2 & B3 & _).
  assert (Z : forall k, bank s' ((done s + 2) mod 3) k = 0).
  { intro k. cbn. rewrite set_same. unfold cleared. destruct (k <? counters_before lines (done s)) eqn:Q; [reflexivity|].
    apply Nat.ltb_ge in Q. now apply (bank_last_bounded F). }
  split.
  - exact (in_step_on all_certified F W G A E).
  - intro k. rewrite (given_on all_certified k F W G A E).
    cbn. rewrite set_other by (intro Q; symmetry in Q; exact (B2 Q)). rewrite (bank_counts F). lia.
  - intro k. cbn. rewrite set_other by (intro Q; symmetry in Q; exact (B3 Q)). apply (bank_next_clear F).
  - intros k _. apply Z.
  - intros v p V C P k. apply Z.
  - apply (knows_on all_certified F W G A E). discriminate.
  - apply (not_advanced_on all_certified F W G A E). discriminate.
Qed.

(* When a worker has come to Advance, all others have done everything of the step. *)
Lemma all_there : forall s w, fine s -> w < workers ->
  at_ (program (done s)) w (place s w) = Some Advance -> step_of s w = done s ->
  forall u, u < workers -> step_of s u = done s /\
    (if u =? w then S (place s u) else place s u) = size (program (done s)) u.
Proof.
  intros s w F W A E u U. pose proof (all_certified (done s)) as C.
  destruct (advances_once C w _ W A) as [Ew Ep].
  destruct (u =? w) eqn:Q.
  - apply Nat.eqb_eq in Q. subst u. split; [exact E|]. rewrite Ep, Ew. apply (advances_last C).
  - apply Nat.eqb_neq in Q.
    pose proof (knows F w u (place s w) W U) as K. unfold reached, progress in K.
    rewrite E, Nat.eqb_refl in K. specialize (K (le_n _)).
    destruct (u =? w) eqn:Q2; [apply Nat.eqb_eq in Q2; contradiction|].
    pose proof (advances_after_all C u U) as L. rewrite <- Ew, <- Ep in L. specialize (L Q).
    pose proof (never_empty C u U) as NE.
    destruct (step_of s u =? done s) eqn:Q3; [|lia]. apply Nat.eqb_eq in Q3. split; [exact Q3|].
    destruct (in_step F u U) as [[_ B]|[B _]]; lia.
Qed.

Lemma fine_advance : forall s w, fine s -> w < workers ->
  at_ (program (done s)) w (place s w) = Some Advance -> step_of s w = done s ->
  fine {| step_of := step_of s; place := set (place s) w (S (place s w)); turn := set (turn s) w 0;
          bank := bank s; done := S (done s) |}.
Proof.
  intros s w F W A E.
  match goal with |- Invariant.fine _ _ _ _ _ _ _ _ ?x => set (s' := x) end.
  pose proof (all_there s w F W A E) as All. pose proof (all_certified (done s)) as C.
  destruct (banks_differ (done s)) as (B1 & B2 & B3 & B4 & B5).
  assert (P0 : forall u, u < workers -> progress s' u = 0).
  { intros u U. unfold progress. cbn. destruct (All u U) as [Q _]. rewrite Q.
    destruct (done s =? S (done s)) eqn:X; [apply Nat.eqb_eq in X; lia|reflexivity]. }
  assert (Cl : forall k, bank s ((done s + 2) mod 3) k = 0).
  { destruct (clears C) as (v & p & V & At).
    apply (bank_last_cleared F v p V At).
    destruct (All v V) as [Q1 Q2]. unfold progress. rewrite Q1, Nat.eqb_refl.
    pose proof (at_size _ _ _ _ At) as Sz. destruct (v =? w) eqn:X; [|lia].
    apply Nat.eqb_eq in X. subst v. assert (p <> place s w) by (intros ->; congruence). lia. }
  split.
  - intros u U. right. cbn. destruct (All u U) as [Q1 Q2]. split; [lia|]. rewrite Q1.
    unfold set. destruct (u =? w) eqn:X; [apply Nat.eqb_eq in X; subst u|]; exact Q2.
  - intro k. cbn [done s' bank].
    assert (Gz : given s' k = 0).
    { unfold Invariant.given. pose proof (signals_all (all_certified (done s')) k) as SA.
      assert (Z : forall l : list (nat * nat), (forall v q, In (v, q) l -> v < workers) ->
         length (filter (fun vq => snd vq <? progress s' (fst vq)) l) = 0).
      { clear - P0. induction l as [|[v q] l IH]; intro H; [reflexivity|]. cbn [filter fst snd].
        rewrite (P0 v) by (apply (H v q); now left). cbn. apply IH. intros v' q' I. apply (H v' q'). now right. }
      apply Z. intros v q I. now apply SA in I. }
    rewrite Gz. replace (S (done s) mod 3) with ((done s + 1) mod 3) by (f_equal; lia).
    apply (bank_next_clear F).
  - intro k. cbn [done s' bank]. rewrite B4. apply Cl.
  - intros k L. cbn [done s' bank counters_before] in *. rewrite B5.
    rewrite (bank_counts F). unfold Invariant.given.
    now rewrite (signals_in_bank C k L).
  - intros v p V _ P. rewrite P0 in P by exact V. lia.
  - intros v u p V U P. rewrite P0 in P |- * by assumption. assert (p = 0) by lia. subst p.
    unfold reached. destruct (u =? v) eqn:X; [lia|]. apply Nat.eqb_neq in X.
    rewrite (knows_nothing (all_certified (done s'))); auto.
  - rewrite P0; [lia|]. apply (advances (all_certified (done s'))).
Qed.

Lemma fine_same_progress : forall s s', fine s -> done s' = done s -> (forall b k, bank s' b k = bank s b k) ->
  (forall u, progress s' u = progress s u) ->
  (forall u, u < workers -> (step_of s' u = done s' /\ place s' u <= size (program (done s')) u) \/
    (S (step_of s' u) = done s' /\ place s' u = size (program (step_of s' u)) u)) -> fine s'.
Proof.
  intros s s' F D B P I.
  assert (G : forall k, given s' k = given s k).
  { intro k. unfold Invariant.given. rewrite D. f_equal. apply filter_ext. intros [v q]. cbn. now rewrite P. }
  split; auto; rewrite ?D.
  - intro k. rewrite B, G. apply (bank_counts F).
  - intro k. rewrite B. apply (bank_next_clear F).
  - intros k L. rewrite B. now apply (bank_last_bounded F).
  - intros w p W C L k. rewrite B. rewrite P in L. exact (bank_last_cleared F w p W C L k).
  - intros w u p W U L. rewrite P in *. now apply (knows F).
  - rewrite P. apply (not_advanced F).
Qed.

Theorem fine_moves : forall s w a s', fine s -> w < workers -> moves s w a s' -> fine s'.
Proof.
  intros s w a s' F W M.
  destruct M as [c n A L|c A|A|i A Hi T|b A T|A T|Pl D].
  - pose proof (in_current all_certified F W A) as E. rewrite E in *.
    apply (fine_goes_on s w (Wait c n)); auto; try discriminate. intros k m Q. injection Q as <- <-. exact L.
  - pose proof (in_current all_certified F W A) as E. rewrite E in *. now apply fine_signal.
  - pose proof (in_current all_certified F W A) as E. rewrite E in *. now apply fine_clear.
  - apply (fine_same_progress s); auto. intros u U. cbn. apply (in_step F u U).
  - pose proof (in_current all_certified F W A) as E. rewrite E in *.
    apply (fine_goes_on s w (Work b)); auto; discriminate.
  - pose proof (in_current all_certified F W A) as E. rewrite E in *. now apply fine_advance.
  - destruct (in_step F w W) as [[X _]|[X _]]; [lia|].
    apply (fine_same_progress s); auto.
    + intro u. unfold progress. cbn. unfold set. destruct (u =? w) eqn:Q; [|reflexivity].
      apply Nat.eqb_eq in Q. subst u. rewrite X, Nat.eqb_refl.
      destruct (step_of s w =? done s) eqn:Y; [apply Nat.eqb_eq in Y; lia|reflexivity].
    + intros u U. cbn. unfold set. destruct (u =? w) eqn:Q; [|apply (in_step F u U)].
      apply Nat.eqb_eq in Q. subst u. left. lia.
Qed.

Theorem fine_runs : forall t s, runs t s -> fine s.
Proof.
  induction 1 as [|t s w a s' R IH W M].
  - apply (fine_initial all_certified).
  - now apply (fine_moves s w a s').
Qed.

End Reachable.
