(* What a worker has done so far follows from where it stands. *)
From Coq Require Import List Arith Bool Lia.
From Plow Require Import Trace Machine Invariant.
Import ListNotations.

Section History.
Variable body : Type.
Variable workers : nat.
Variable program : nat -> code body.
Variable lines : nat -> nat.
Variable turns : nat -> nat -> nat -> nat.
Notation moves := (moves body program lines turns).
Notation runs := (runs body workers program lines turns).

(* What a worker has done when it stands where it stands does not depend on how it came there. *)
Definition acts (e w p k : nat) : list action :=
  map (fun j => {| of_step := e; of_worker := w; of_place := p; of_turn := j |}) (seq 0 k).
Definition acts_at (e w p : nat) : list action :=
  match at_ (program e) w p with Some (Work _) | Some Advance => acts e w p (turns e w p) | _ => [] end.
Definition acts_before (e w p : nat) : list action := flat_map (acts_at e w) (seq 0 p).
Definition history (e w p k : nat) : list action :=
  flat_map (fun e' => acts_before e' w (size (program e') w)) (seq 0 e) ++ acts_before e w p ++ acts e w p k.

Lemma acts_before_next : forall e w p, acts_before e w (S p) = acts_before e w p ++ acts_at e w p.
Proof. intros. unfold acts_before. rewrite seq_S, flat_map_app. cbn. now rewrite app_nil_r. Qed.

Notation part := (part action nat Nat.eq_dec of_worker).
Definition at_work (s : state) (w : nat) : Prop :=
  turn s w > 0 -> exists i, at_ (program (step_of s w)) w (place s w) = Some i /\ ((exists b, i = Work b) \/ i = Advance).

Lemma set_eq : forall A (f : nat -> A) i v, Machine.set f i v i = v.
Proof. intros. unfold Machine.set. now rewrite Nat.eqb_refl. Qed.
Lemma set_ne : forall A (f : nat -> A) i j v, j <> i -> Machine.set f i v j = f j.
Proof. intros A f i j v N. unfold Machine.set. apply Nat.eqb_neq in N. now rewrite N. Qed.

Lemma history_on : forall e w p k, k = 0 \/ (exists i, at_ (program e) w p = Some i /\ ((exists b, i = Work b) \/ i = Advance)) ->
  (forall i, at_ (program e) w p = Some i -> (exists b, i = Work b) \/ i = Advance -> k = turns e w p) ->
  history e w (S p) 0 = history e w p k.
Proof.
  intros e w p k Z T. unfold history. f_equal. rewrite acts_before_next, <- app_assoc. f_equal.
  unfold acts at 1. cbn [seq map]. rewrite app_nil_r. unfold acts_at.
  destruct (at_ (program e) w p) as [i|] eqn:A.
  - destruct i; try (destruct Z as [->|(i & Q & [[b ->]| ->])]; [reflexivity|congruence|congruence]).
    + rewrite (T (Work b) eq_refl) by eauto. reflexivity.
    + rewrite (T Advance eq_refl) by eauto. reflexivity.
  - destruct Z as [->|(i & Q & _)]; [reflexivity|discriminate].
Qed.

Lemma history_runs : forall t s, runs t s -> forall w,
  part w t = history (step_of s w) w (place s w) (turn s w) /\ at_work s w.
Proof.
  induction 1 as [|t s w a s' R IH W M]; intro v.
  - split; [reflexivity|]. intro H. cbn in H. lia.
  - destruct (IH v) as [P T]. rewrite part_app.
    assert (None_case : a = None -> (v <> w -> step_of s' v = step_of s v /\ place s' v = place s v /\ turn s' v = turn s v) ->
      (v = w -> turn s' v = 0 /\ history (step_of s' v) v (place s' v) 0 = history (step_of s v) v (place s v) (turn s v)) ->
      part v t ++ part v (match a with Some x => [x] | None => [] end) = history (step_of s' v) v (place s' v) (turn s' v)
        /\ at_work s' v).
    { intros -> No Ye. cbn. rewrite app_nil_r. destruct (Nat.eq_dec v w) as [Q|Q].
      - destruct (Ye Q) as [Y1 Y2]. rewrite Y1, Y2. split; [exact P|]. intro H. lia.
      - destruct (No Q) as (N1 & N2 & N3). unfold at_work. rewrite N1, N2, N3. auto. }
    assert (Idle : forall i, at_ (program (step_of s w)) w (place s w) = Some i -> (forall b, i <> Work b) -> i <> Advance ->
       v = w -> history (step_of s v) v (S (place s v)) 0 = history (step_of s v) v (place s v) (turn s v)).
    { intros i A N1 N2 ->. apply history_on.
      - left. destruct (turn s w) eqn:Q; [reflexivity|]. destruct T as (j & A' & J); [lia|].
        rewrite A in A'. injection A' as <-. destruct J as [[b ->]| ->]; [exfalso; now apply (N1 b)|exfalso; now apply N2].
      - intros j A' J. rewrite A in A'. injection A' as <-. destruct J as [[b ->]| ->]; [exfalso; now apply (N1 b)|exfalso; now apply N2]. }
    destruct M as [c n A L|c A|A|i A Hi Tn|b A Tn|A Tn|Pl D].
    + apply None_case; cbn; auto.
      * intro Q. rewrite !set_ne by exact Q. auto.
      * intro Q. pose proof (Idle _ A) as I. subst v. rewrite !set_eq. split; [reflexivity|]. apply I; auto; discriminate.
    + apply None_case; cbn; auto.
      * intro Q. rewrite !set_ne by exact Q. auto.
      * intro Q. pose proof (Idle _ A) as I. subst v. rewrite !set_eq. split; [reflexivity|]. apply I; auto; discriminate.
    + apply None_case; cbn; auto.
      * intro Q. rewrite !set_ne by exact Q. auto.
      * intro Q. pose proof (Idle _ A) as I. subst v. rewrite !set_eq. split; [reflexivity|]. apply I; auto; discriminate.
    + unfold at_work. cbn [step_of place turn]. destruct (Nat.eq_dec v w) as [->|Q].
      * rewrite set_eq. split; [|intros _; eauto].
        unfold Trace.part at 2. cbn [filter of_worker]. destruct (Nat.eq_dec w w) as [_|X]; [|congruence].
        rewrite P. unfold history, acts. rewrite seq_S, map_app, <- !app_assoc. reflexivity.
      * rewrite set_ne by exact Q. split; [|exact T].
        unfold Trace.part at 2. cbn [filter of_worker]. destruct (Nat.eq_dec w v) as [X|_]; [congruence|].
        now rewrite app_nil_r.
    + apply None_case; cbn; auto.
      * intro Q. rewrite !set_ne by exact Q. auto.
      * intro Q. subst v. rewrite !set_eq. split; [reflexivity|].
        apply history_on; [right; eexists; split; [exact A|eauto]|intros; exact Tn].
    + apply None_case; cbn; auto.
      * intro Q. rewrite !set_ne by exact Q. auto.
      * intro Q. subst v. rewrite !set_eq. split; [reflexivity|].
        apply history_on; [right; eexists; split; [exact A|eauto]|intros; exact Tn].
    + apply None_case; cbn; auto.
      * intro Q. rewrite !set_ne by exact Q. auto.
      * intro Q. subst v. rewrite !set_eq. split; [reflexivity|].
        assert (turn s w = 0) as ->.
        { destruct (turn s w) eqn:X; [reflexivity|]. destruct T as (j & A & _); [lia|]. apply at_size in A. lia. }
        unfold history. rewrite seq_S, flat_map_app, <- app_assoc. cbn. rewrite Pl. now rewrite !app_nil_r.
Qed.

End History.
