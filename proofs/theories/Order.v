(* Executions of certified programs: conflicting actions come in one order in all of them, so that all give the same memory. *)
From Coq Require Import List Arith Bool Lia.
From Plow Require Import Trace Machine Invariant Reachable History.
Import ListNotations.

Section Order.
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

(* Memory, and where the work of a step may look and change. *)
Variables location value : Type.
Variables touches changes : nat -> body -> location -> bool.
Hypothesis changes_is_touches : forall e b l, changes e b l = true -> touches e b l = true.

Definition clash (e : nat) (b b' : body) : Prop :=
  exists l, (changes e b l = true /\ touches e b' l = true) \/ (touches e b l = true /\ changes e b' l = true).
Hypothesis race_free : forall e w p b v q b', w < workers -> v < workers -> w <> v ->
  at_ (program e) w p = Some (Work b) -> at_ (program e) v q = Some (Work b') -> clash e b b' ->
  before (know e) w p v q \/ before (know e) v q w p.

(* The registers of a worker: what it keeps between the actions of its work. *)
Variable own : nat -> location -> bool.
Hypothesis own_alone : forall w v l, own w l = true -> own v l = true -> w = v.
Hypothesis own_apart : forall e w b l, own w l = true -> touches e b l = false.

Definition role (a : action) : option (instr body) :=
  if of_worker a <? workers then at_ (program (of_step a)) (of_worker a) (of_place a) else None.
(* Advance hands tokens from one step to the next: it may look at and change anything. *)
Definition touch (a : action) (l : location) : bool :=
  match role a with Some (Work b) => touches (of_step a) b l || own (of_worker a) l | Some Advance => true | _ => false end.
Definition change (a : action) (l : location) : bool :=
  match role a with Some (Work b) => changes (of_step a) b l || own (of_worker a) l | Some Advance => true | _ => false end.

(* What actions do is not known, only where. *)
Variable perform : action -> (location -> value) -> location -> value.
Hypothesis only_changes : forall a s l, change a l = false -> perform a s l = s l.
Hypothesis only_touches : forall a s t,
  (forall l, touch a l = true -> s l = t l) -> forall l, change a l = true -> perform a s l = perform a t l.

Notation fine := (fine body workers program lines signals know wa pa).
Notation moves := (moves body program lines turns).
Notation runs := (runs body workers program lines turns).
Notation exec := (exec action location value perform).

Definition must (x y : action) : Prop :=
  of_step x < of_step y \/
  of_step x = of_step y /\ of_worker x <> of_worker y /\
    before (know (of_step x)) (of_worker x) (of_place x) (of_worker y) (of_place y).

Lemma change_is_touch : forall a l, change a l = true -> touch a l = true.
Proof. intros a l. unfold change, touch. destruct (role a) as [[]|]; auto.
  rewrite !orb_true_iff. intros [H|H]; auto.
Qed.

Lemma conflicts_are_ordered : forall a b, of_worker a <> of_worker b ->
  conflict action location touch change a b -> must a b \/ must b a.
Proof.
  intros a b N (l & C). unfold must.
  destruct (lt_eq_lt_dec (of_step a) (of_step b)) as [[L|E]|L]; [now left; left| |now right; left].
  unfold touch, change, role in C. rewrite <- E in C.
  destruct (of_worker a <? workers) eqn:Wa; [|destruct C as [[]|[]]; discriminate].
  destruct (of_worker b <? workers) eqn:Wb; [|destruct C as [[]|[]]; discriminate].
  apply Nat.ltb_lt in Wa. apply Nat.ltb_lt in Wb.
  pose proof (all_certified (of_step a)) as K.
  destruct (at_ (program (of_step a)) (of_worker a) (of_place a)) as [i|] eqn:A; [|destruct C as [[]|[]]; discriminate].
  destruct (at_ (program (of_step a)) (of_worker b) (of_place b)) as [j|] eqn:B;
    [|destruct i, C as [[]|[]]; discriminate].
  assert (Last : forall w p v q i, w < workers -> v < workers -> w <> v -> at_ (program (of_step a)) w p = Some Advance ->
    at_ (program (of_step a)) v q = Some i -> before (know (of_step a)) v q w p).
  { clear - K. intros w p v q i W V N A B. destruct (advances_once K w p W A) as [-> ->].
    pose proof (advances_after_all K v V (fun H => N (eq_sym H))) as L. apply at_size in B.
    unfold before, reached. destruct (v =? wa (of_step a)) eqn:Q; [apply Nat.eqb_eq in Q; congruence|lia]. }
  destruct i; try (destruct j, C as [[]|[]]; discriminate).
  - destruct j; try (destruct C as [[]|[]]; discriminate).
    + assert (C' : clash (of_step a) b0 b1).
      { exists l.
        assert (Quiet : forall w e b, own w l = true -> touches e b l = false /\ changes e b l = false).
        { intros w e b' O. pose proof (own_apart e w b' l O) as X. split; [exact X|].
          destruct (changes e b' l) eqn:Y; [|reflexivity]. rewrite (changes_is_touches e b' l Y) in X. discriminate. }
        destruct (own (of_worker a) l) eqn:Oa; destruct (own (of_worker b) l) eqn:Ob.
        - exfalso. exact (N (own_alone _ _ l Oa Ob)).
        - destruct (Quiet _ (of_step a) b1 Oa) as [X Y]. rewrite X, Y in C. destruct C as [[_ C]|[_ C]]; discriminate.
        - destruct (Quiet _ (of_step a) b0 Ob) as [X Y]. rewrite X, Y in C. destruct C as [[C _]|[C _]]; discriminate.
        - now rewrite !orb_false_r in C. }
      destruct (race_free _ _ _ _ _ _ _ Wa Wb N A B C'); [left|right]; right; repeat split; auto.
      rewrite <- E. auto.
    + left; right. repeat split; auto. eapply Last; eauto.
  - destruct j; try (destruct C as [[]|[]]; discriminate).
    + right; right. repeat split; auto. rewrite <- E. eapply Last; eauto.
    + exfalso. destruct (advances_once K _ _ Wa A), (advances_once K _ _ Wb B). congruence.
Qed.

(* What has been done so far lies in steps that are over, or at places of this step that were reached. *)
Definition behind (s : state) (y : action) : Prop :=
  of_worker y < workers /\
  (of_step y < done s \/ of_step y = done s /\ of_place y <= progress s (of_worker y)).

Lemma moves_forward : forall s w a s', fine s -> w < workers -> moves s w a s' ->
  done s' = S (done s) \/ done s' = done s /\ forall u, progress s u <= progress s' u.
Proof.
  intros s w a s' F W M.
  assert (Step : forall s', step_of s' = step_of s -> done s' = done s ->
     place s' = Machine.set (place s) w (S (place s w)) -> forall u, progress s u <= progress s' u).
  { intros t E D P u. unfold progress. rewrite E, D, P. unfold Machine.set.
    destruct (u =? w) eqn:Q; [apply Nat.eqb_eq in Q; subst u|]; destruct (step_of s _ =? done s); lia. }
  destruct M as [c n A L|c A|A|i A Hi T|b A T|A T|Pl D]; try (right; split; [reflexivity|]; apply Step; reflexivity).
  - right. split; [reflexivity|]. intro u. unfold progress. cbn. lia.
  - left. cbn. now rewrite (in_current all_certified F W A).
  - right. split; [reflexivity|]. intro u. unfold progress. cbn. unfold Machine.set.
    destruct (u =? w) eqn:Q; [|lia]. apply Nat.eqb_eq in Q. subst u.
    destruct (step_of s w =? done s) eqn:X; [apply Nat.eqb_eq in X; lia|lia].
Qed.

Lemma action_of_move : forall s w x s', fine s -> w < workers -> moves s w (Some x) s' ->
  of_worker x = w /\ of_step x = done s /\ of_place x = progress s w /\ of_turn x = turn s w.
Proof.
  intros s w x s' F W M. inversion M as [| | |i A Hi T| | |]; subst. cbn.
  pose proof (in_current all_certified F W A) as E. unfold progress. rewrite E, Nat.eqb_refl. auto.
Qed.

Lemma behind_runs : forall t s, runs t s -> forall y, In y t -> behind s y.
Proof.
  induction 1 as [|t s w a s' R IH W M]; intros y I; [destruct I|].
  pose proof (fine_runs _ _ _ _ _ _ _ _ _ _ all_certified _ _ R) as F.
  assert (B : behind s y).
  { apply in_app_or in I. destruct I as [I|I]; [now apply IH|].
    destruct a as [x|]; [|destruct I]. destruct I as [<-|[]].
    destruct (action_of_move s w x s' F W M) as (X1 & X2 & X3 & X4). split; [congruence|]. right. rewrite X1, X3. auto. }
  destruct B as [B1 B2]. split; [exact B1|].
  destruct (moves_forward s w a s' F W M) as [D|[D P]]; rewrite D; [lia|]. specialize (P (of_worker y)). lia.
Qed.

Lemma ordered_runs : forall t s, runs t s -> ordered action must t.
Proof.
  induction 1 as [|t s w a s' R IH W M]; intros t1 y t2 x t3 E.
  - destruct t1; discriminate.
  - destruct a as [z|]; [|rewrite app_nil_r in E; exact (IH t1 y t2 x t3 E)].
    destruct (exists_last (l := x :: t3)) as (l & z' & L); [discriminate|].
    destruct l as [|x' l].
    + (* x is the action that was just done *)
      injection L as -> ->.
      replace (t1 ++ y :: t2 ++ [z']) with ((t1 ++ y :: t2) ++ [z']) in E by (now rewrite <- app_assoc).
      apply app_inj_tail in E. destruct E as [E <-].
      pose proof (fine_runs _ _ _ _ _ _ _ _ _ _ all_certified _ _ R) as F.
      destruct (action_of_move s w z s' F W M) as (X1 & X2 & X3 & _).
      assert (B : behind s y) by (apply (behind_runs t s R); rewrite E; apply in_or_app; right; now left).
      destruct B as [By B]. intros [Mu|(Mu1 & Mu2 & Mu3)]; [lia|].
      destruct B as [B|[B1 B2]]; [lia|].
      unfold before, reached in Mu3. rewrite X1, X3, X2 in *.
      destruct (w =? of_worker y) eqn:Q; [apply Nat.eqb_eq in Q; congruence|].
      pose proof (knows F (of_worker y) w (of_place y) By W B2) as K. unfold reached in K. rewrite Q in K. lia.
    + cbn in L. injection L as <- L. subst t3.
      replace (t1 ++ y :: t2 ++ x :: l ++ [z']) with ((t1 ++ y :: t2 ++ x :: l) ++ [z']) in E
        by (rewrite <- app_assoc; cbn; now rewrite <- app_assoc).
      apply app_inj_tail in E. destruct E as [E _]. exact (IH t1 y t2 x l E).
Qed.

Notation part := (part action nat Nat.eq_dec of_worker).

(* THEOREM. Two executions that have come equally far, each worker at the same place of the same step, leave the same memory,
   whatever the interleavings were. *)
Theorem same_memory : forall t1 s1 t2 s2, runs t1 s1 -> runs t2 s2 ->
  (forall w, w < workers -> step_of s1 w = step_of s2 w /\ place s1 w = place s2 w /\ turn s1 w = turn s2 w) ->
  forall m l, exec t1 m l = exec t2 m l.
Proof.
  intros t1 s1 t2 s2 R1 R2 Q m.
  apply (same_parts_same_store action nat location value Nat.eq_dec of_worker perform touch change
           change_is_touch only_changes only_touches must conflicts_are_ordered).
  - intro w. destruct (lt_dec w workers) as [W|W].
    + destruct (history_runs _ _ _ _ _ t1 s1 R1 w) as [-> _]. destruct (history_runs _ _ _ _ _ t2 s2 R2 w) as [-> _].
      destruct (Q w W) as (-> & -> & ->). reflexivity.
    + assert (No : forall t s, runs t s -> part w t = []).
      { intros t s R. destruct (part w t) as [|y l] eqn:E; [reflexivity|]. exfalso.
        assert (I : In y (part w t)) by (rewrite E; now left). unfold Trace.part in I. apply filter_In in I. destruct I as [I X].
        destruct (behind_runs t s R y I) as [B _]. destruct (Nat.eq_dec (of_worker y) w); [lia|discriminate]. }
      now rewrite (No t1 s1 R1), (No t2 s2 R2).
  - exact (ordered_runs t1 s1 R1).
  - exact (ordered_runs t2 s2 R2).
Qed.

End Order.
