(* What a certificate says of one step's code, and what then holds in every state that the machine can reach. *)
From Coq Require Import ZArith ZifyNat List Arith Bool Lia.
From Plow Require Import Machine.
Import ListNotations.
Open Scope nat_scope.
Ltac Zify.zify_post_hook ::= Z.div_mod_to_equations.

Lemma banks_differ : forall e, (e + 1) mod 3 <> e mod 3 /\ (e + 2) mod 3 <> e mod 3 /\ (e + 2) mod 3 <> (e + 1) mod 3
  /\ (S e + 1) mod 3 = (e + 2) mod 3 /\ (S e + 2) mod 3 = e mod 3.
Proof. intro e. repeat split; lia. Qed.

Lemma set_same : forall (A : Type) (f : nat -> A) i v, set f i v i = v.
Proof. intros. unfold set. now rewrite Nat.eqb_refl. Qed.
Lemma set_other : forall (A : Type) (f : nat -> A) i j v, j <> i -> set f i v j = f j.
Proof. intros A f i j v N. unfold set. apply Nat.eqb_neq in N. now rewrite N. Qed.

Definition pair_dec : forall a b : nat * nat, {a = b} + {a <> b}.
Proof. decide equality; apply Nat.eq_dec. Defined.

Lemma filter_length_le : forall A (f : A -> bool) l, length (filter f l) <= length l.
Proof. induction l as [|a l IH]; cbn; [lia|]. destruct (f a); cbn; lia. Qed.

Section Certified.
Variable body : Type.
Variable workers : nat.

(* How far worker u is, at least, when worker w is at place p. *)
Definition reached (know : nat -> nat -> nat -> nat) (w p u : nat) : nat := if u =? w then p else know w p u.
(* The instruction at (w, p) is done before (v, q) begins. *)
Definition before (know : nat -> nat -> nat -> nat) (w p v q : nat) : Prop := p < reached know v q w.

Record certified (c : code body) (lines : nat) (signals : nat -> list (nat * nat))
    (know : nat -> nat -> nat -> nat) (rank : nat -> nat -> nat) (wa pa : nat) : Prop := {
  never_empty : forall w, w < workers -> 0 < size c w;
  signals_once : forall k, NoDup (signals k);
  signals_all : forall k v q, In (v, q) (signals k) <-> v < workers /\ at_ c v q = Some (Signal k);
  signals_in_bank : forall k, lines <= k -> signals k = [];
  waits_exact : forall w p k n, w < workers -> at_ c w p = Some (Wait k n) -> n = length (signals k);
  knows_nothing : forall w u, w < workers -> u < workers -> u <> w -> know w 0 u = 0;
  learns : forall w p i u, w < workers -> u < workers -> u <> w -> at_ c w p = Some i ->
    know w (S p) u <= know w p u \/
    exists k n v q, i = Wait k n /\ In (v, q) (signals k) /\
      know w (S p) u <= (if v =? u then S q else know v q u);
  ranks_grow : forall w p i, w < workers -> at_ c w p = Some i -> rank w p <= rank w (S p);
  waits_for_lower : forall w p k n v q, w < workers -> at_ c w p = Some (Wait k n) -> In (v, q) (signals k) ->
    rank v q < rank w p;
  clears : exists w p, w < workers /\ at_ c w p = Some Clear;
  advances : wa < workers /\ at_ c wa pa = Some Advance;
  advances_last : S pa = size c wa;
  advances_after_all : forall u, u < workers -> u <> wa -> size c u <= know wa pa u;
  advances_once : forall w p, w < workers -> at_ c w p = Some Advance -> w = wa /\ p = pa
}.

Arguments never_empty {c lines signals know rank wa pa}.
Arguments signals_once {c lines signals know rank wa pa}.
Arguments signals_all {c lines signals know rank wa pa}.
Arguments signals_in_bank {c lines signals know rank wa pa}.
Arguments waits_exact {c lines signals know rank wa pa}.
Arguments knows_nothing {c lines signals know rank wa pa}.
Arguments learns {c lines signals know rank wa pa}.
Arguments ranks_grow {c lines signals know rank wa pa}.
Arguments waits_for_lower {c lines signals know rank wa pa}.
Arguments clears {c lines signals know rank wa pa}.
Arguments advances {c lines signals know rank wa pa}.
Arguments advances_last {c lines signals know rank wa pa}.
Arguments advances_after_all {c lines signals know rank wa pa}.
Arguments advances_once {c lines signals know rank wa pa}.

Variable program : nat -> code body.
Variable lines : nat -> nat.
Variable signals : nat -> nat -> list (nat * nat).
Variable know : nat -> nat -> nat -> nat -> nat.
Variable rank : nat -> nat -> nat -> nat.
Variables wa pa : nat -> nat.
Hypothesis all_certified :
  forall e, certified (program e) (lines e) (signals e) (know e) (rank e) (wa e) (pa e).

(* Where a worker is in the step that runs; 0 when it has not begun it. *)
Definition progress (s : state) (w : nat) : nat := if step_of s w =? done s then place s w else 0.
Definition given (s : state) (k : nat) : nat :=
  length (filter (fun vq => snd vq <? progress s (fst vq)) (signals (done s) k)).

Record fine (s : state) : Prop := {
  in_step : forall w, w < workers ->
    (step_of s w = done s /\ place s w <= size (program (done s)) w) \/
    (S (step_of s w) = done s /\ place s w = size (program (step_of s w)) w);
  bank_counts : forall k, bank s (done s mod 3) k = given s k;
  bank_next_clear : forall k, bank s ((done s + 1) mod 3) k = 0;
  bank_last_bounded : forall k, counters_before lines (done s) <= k -> bank s ((done s + 2) mod 3) k = 0;
  bank_last_cleared : forall w p, w < workers -> at_ (program (done s)) w p = Some Clear -> p < progress s w ->
    forall k, bank s ((done s + 2) mod 3) k = 0;
  knows : forall w u p, w < workers -> u < workers -> p <= progress s w ->
    reached (know (done s)) w p u <= progress s u;
  not_advanced : progress s (wa (done s)) <= pa (done s)
}.

Arguments in_step {s}.
Arguments bank_counts {s}.
Arguments bank_next_clear {s}.
Arguments bank_last_bounded {s}.
Arguments bank_last_cleared {s}.
Arguments knows {s}.
Arguments not_advanced {s}.

Lemma at_size : forall c w p (i : instr body), at_ c w p = Some i -> p < size c w.
Proof. intros c w p i H. apply nth_error_Some. unfold at_ in H. now rewrite H. Qed.

Lemma in_current : forall s w i, fine s -> w < workers ->
  at_ (program (step_of s w)) w (place s w) = Some i -> step_of s w = done s.
Proof.
  intros s w i F W H. destruct (in_step F w W) as [[E _]|[_ P]]; [exact E|].
  apply at_size in H. lia.
Qed.

Lemma fine_initial : fine initial.
Proof.
  split; cbn.
  - intros w W. left. split; lia.
  - intro k. unfold given, progress. cbn. induction (signals 0 k) as [|[v q] l IH]; [reflexivity|exact IH].
  - reflexivity.
  - reflexivity.
  - reflexivity.
  - intros w u p W U P. unfold progress in P. cbn in P. assert (p = 0) by lia. subst p. unfold reached, progress. cbn.
    destruct (u =? w) eqn:E; [lia|]. apply Nat.eqb_neq in E.
    rewrite (knows_nothing (all_certified 0)); auto.
  - unfold progress. cbn. lia.
Qed.

(* The states after a worker has gone on by one instruction, whatever became of the banks. *)
Record went_on (s s' : state) (w : nat) : Prop := {
  went_step : forall u, step_of s' u = step_of s u;
  went_done : done s' = done s;
  went_place : place s' w = S (place s w);
  stayed_place : forall u, u <> w -> place s' u = place s u
}.

Arguments went_step {s s' w}.
Arguments went_done {s s' w}.
Arguments went_place {s s' w}.
Arguments stayed_place {s s' w}.

Lemma progress_other : forall s s' w u, went_on s s' w -> u <> w -> progress s' u = progress s u.
Proof. intros s s' w u G N. unfold progress. destruct G as [G1 G2 G3 G4]. now rewrite G1, G2, G4. Qed.

Lemma progress_own : forall s s' w, went_on s s' w -> step_of s w = done s ->
  progress s w = place s w /\ progress s' w = S (place s w).
Proof.
  intros s s' w [G1 G2 G3 G4] E. unfold progress. rewrite G1, G2, G3, E, Nat.eqb_refl. auto.
Qed.

Lemma all_given : forall s k, given s k = length (signals (done s) k) ->
  forall v q, In (v, q) (signals (done s) k) -> q < progress s v.
Proof.
  intros s k. unfold given. induction (signals (done s) k) as [|[v q] l IH]; [intros _ v q []|].
  cbn [filter length fst snd]. intros H v' q' [E|I].
  - injection E as -> ->. destruct (q' <? progress s v') eqn:L; [now apply Nat.ltb_lt|]. cbn [length] in H.
    pose proof (filter_length_le _ (fun vq => snd vq <? progress s (fst vq)) l) as B. lia.
  - destruct (q <? progress s v) eqn:L; cbn [length] in H.
    + apply IH; [lia|exact I].
    + pose proof (filter_length_le _ (fun vq => snd vq <? progress s (fst vq)) l) as B. lia.
Qed.

Lemma given_bound : forall s k, given s k <= length (signals (done s) k).
Proof. intros. apply filter_length_le. Qed.

(* What a worker knows after an instruction. *)
Lemma knows_on : forall s s' w i, fine s -> w < workers -> went_on s s' w ->
  at_ (program (done s)) w (place s w) = Some i -> step_of s w = done s ->
  (forall k n, i = Wait k n -> n <= bank s (done s mod 3) k) ->
  forall v u p, v < workers -> u < workers -> p <= progress s' v -> reached (know (done s)) v p u <= progress s' u.
Proof.
  intros s s' w i F W G A E M.
  destruct (progress_own _ _ _ G E) as [Po Pn].
  assert (Up : forall u, progress s u <= progress s' u).
  { intro u. destruct (Nat.eq_dec u w) as [->|N]; [lia|]. rewrite (progress_other _ _ _ _ G N). lia. }
  pose proof (all_certified (done s)) as C.
  intros v u p V U P.
  destruct (Nat.eq_dec v w) as [->|N].
  2: { rewrite (progress_other _ _ _ _ G N) in P. etransitivity; [|apply Up]. apply (knows F); auto. }
  destruct (le_lt_dec p (place s w)) as [L|L].
  { etransitivity; [|apply Up]. apply (knows F); auto. lia. }
  assert (p = S (place s w)) by lia. subst p.
  unfold reached. destruct (u =? w) eqn:Q.
  { apply Nat.eqb_eq in Q. subst u. lia. }
  apply Nat.eqb_neq in Q.
  etransitivity; [|apply Up].
  destruct (learns C w (place s w) i u W U Q A) as [K|(k & n & v & q & -> & I & K)].
  - etransitivity; [exact K|]. pose proof (knows F w u (place s w) W U) as K2. unfold reached in K2.
    apply Nat.eqb_neq in Q. rewrite Q in K2. apply K2. lia.
  - assert (Q2 : q < progress s v).
    { apply (all_given s k); [|exact I]. apply Nat.le_antisymm; [apply given_bound|].
      rewrite <- (bank_counts F). rewrite <- (waits_exact C w _ k n W A). now apply M. }
    apply (signals_all C) in I. destruct I as [Vw _].
    etransitivity; [exact K|]. destruct (v =? u) eqn:Vu.
    + apply Nat.eqb_eq in Vu. subst v. lia.
    + pose proof (knows F v u q Vw U) as K2. unfold reached in K2. rewrite Nat.eqb_sym, Vu in K2. apply K2. lia.
Qed.

Lemma in_step_on : forall s s' w i, fine s -> w < workers -> went_on s s' w ->
  at_ (program (done s)) w (place s w) = Some i -> step_of s w = done s ->
  forall u, u < workers ->
    (step_of s' u = done s' /\ place s' u <= size (program (done s')) u) \/
    (S (step_of s' u) = done s' /\ place s' u = size (program (step_of s' u)) u).
Proof.
  intros s s' w i F W [G1 G2 G3 G4] A E u U. rewrite G1, G2. destruct (Nat.eq_dec u w) as [->|N].
  - left. split; [exact E|]. rewrite G3. apply at_size in A. lia.
  - rewrite G4 by exact N. apply (in_step F u U).
Qed.

Lemma not_advanced_on : forall s s' w i, fine s -> w < workers -> went_on s s' w ->
  at_ (program (done s)) w (place s w) = Some i -> step_of s w = done s -> i <> Advance ->
  progress s' (wa (done s)) <= pa (done s).
Proof.
  intros s s' w i F W G A E N.
  pose proof (not_advanced F) as NA.
  destruct (Nat.eq_dec (wa (done s)) w) as [Q|Q].
  - destruct (progress_own _ _ _ G E) as [Po Pn]. rewrite Q in *. rewrite Pn, Po in *.
    destruct (Nat.eq_dec (place s w) (pa (done s))) as [Pq|]; [|lia]. exfalso. apply N.
    pose proof (all_certified (done s)) as C. destruct (advances C) as [_ A2].
    rewrite Q, <- Pq, A in A2. congruence.
  - now rewrite (progress_other _ _ _ _ G Q).
Qed.

(* Going on without a signal leaves the numbers of signals given as they were. *)
Lemma given_on : forall s s' w i k, fine s -> w < workers -> went_on s s' w ->
  at_ (program (done s)) w (place s w) = Some i -> step_of s w = done s ->
  given s' k = given s k + (match i with Signal k' => if k' =? k then 1 else 0 | _ => 0 end).
Proof.
  intros s s' w i k F W G A E.
  destruct (progress_own _ _ _ G E) as [Po Pn].
  pose proof (all_certified (done s)) as C.
  unfold given. rewrite (went_done G).
  pose proof (signals_once C k) as ND.
  assert (Mem : forall v q, In (v, q) (signals (done s) k) -> at_ (program (done s)) v q = Some (Signal k))
    by (intros v q I; apply (signals_all C) in I; tauto).
  assert (Has : i = Signal k -> In (w, place s w) (signals (done s) k))
    by (intros ->; apply (signals_all C); auto).
  assert (Num : forall l, NoDup l -> (forall v q, In (v, q) l -> at_ (program (done s)) v q = Some (Signal k)) ->
    length (filter (fun vq => snd vq <? progress s' (fst vq)) l) =
    length (filter (fun vq => snd vq <? progress s (fst vq)) l)
      + (if in_dec pair_dec (w, place s w) l then 1 else 0)).
  { clear ND Mem Has. induction l as [|[v q] l IH]; intros ND Mem.
    - now destruct (in_dec _ _ _) as [[]|].
    - inversion ND as [|? ? NI ND']; subst. specialize (IH ND' (fun v q H => Mem v q (or_intror H))).
      cbn [filter fst snd].
      destruct (Nat.eq_dec v w) as [->|N].
      + destruct (Nat.eq_dec q (place s w)) as [->|Nq].
        * assert (R1 : (place s w <? progress s' w) = true) by (apply Nat.ltb_lt; lia).
          assert (R2 : (place s w <? progress s w) = false) by (apply Nat.ltb_ge; lia).
          rewrite R1, R2. cbn [length]. rewrite IH.
          destruct (in_dec _ (w, place s w) l); [contradiction|].
          destruct (in_dec _ (w, place s w) ((w, place s w) :: l)) as [|X]; [lia|]. exfalso. apply X. now left.
        * assert (R : (q <? progress s' w) = (q <? progress s w)).
          { rewrite Pn, Po. destruct (q <? place s w) eqn:T; [apply Nat.ltb_lt in T|apply Nat.ltb_ge in T].
            - apply Nat.ltb_lt. lia.
            - apply Nat.ltb_ge. lia. }
          rewrite R. 
          assert (D : (if in_dec pair_dec (w, place s w) ((w, q) :: l) then 1 else 0) =
                      (if in_dec pair_dec (w, place s w) l then 1 else 0)).
          { destruct (in_dec _ (w, place s w) ((w, q) :: l)) as [I|I]; destruct (in_dec _ (w, place s w) l) as [J|J]; auto.
            - destruct I as [X|X]; [injection X; intros; congruence|contradiction].
            - exfalso. apply I. now right. }
          rewrite D. destruct (q <? progress s w); cbn [length]; lia.
      + rewrite (progress_other _ _ _ _ G N).
        assert (D : (if in_dec pair_dec (w, place s w) ((v, q) :: l) then 1 else 0) =
                    (if in_dec pair_dec (w, place s w) l then 1 else 0)).
        { destruct (in_dec _ (w, place s w) ((v, q) :: l)) as [I|I]; destruct (in_dec _ (w, place s w) l) as [J|J]; auto.
          - destruct I as [X|X]; [injection X; intros; congruence|contradiction].
          - exfalso. apply I. now right. }
        rewrite D. destruct (q <? progress s v); cbn [length]; lia. }
  rewrite (Num _ ND Mem). f_equal.
  destruct (in_dec _ (w, place s w) (signals (done s) k)) as [I|I].
  - apply Mem in I. rewrite A in I. injection I as ->. now rewrite Nat.eqb_refl.
  - destruct i; auto. destruct (c =? k) eqn:Q; auto. apply Nat.eqb_eq in Q. subst c. exfalso. auto.
Qed.

End Certified.

Arguments never_empty {body workers c lines signals know rank wa pa}.
Arguments signals_once {body workers c lines signals know rank wa pa}.
Arguments signals_all {body workers c lines signals know rank wa pa}.
Arguments signals_in_bank {body workers c lines signals know rank wa pa}.
Arguments waits_exact {body workers c lines signals know rank wa pa}.
Arguments knows_nothing {body workers c lines signals know rank wa pa}.
Arguments learns {body workers c lines signals know rank wa pa}.
Arguments ranks_grow {body workers c lines signals know rank wa pa}.
Arguments waits_for_lower {body workers c lines signals know rank wa pa}.
Arguments clears {body workers c lines signals know rank wa pa}.
Arguments advances {body workers c lines signals know rank wa pa}.
Arguments advances_last {body workers c lines signals know rank wa pa}.
Arguments advances_after_all {body workers c lines signals know rank wa pa}.
Arguments advances_once {body workers c lines signals know rank wa pa}.
Arguments in_step {body workers program lines signals know wa pa s}.
Arguments bank_counts {body workers program lines signals know wa pa s}.
Arguments bank_next_clear {body workers program lines signals know wa pa s}.
Arguments bank_last_bounded {body workers program lines signals know wa pa s}.
Arguments bank_last_cleared {body workers program lines signals know wa pa s}.
Arguments knows {body workers program lines signals know wa pa s}.
Arguments not_advanced {body workers program lines signals know wa pa s}.
Arguments progress_other {s s' w u}.
Arguments progress_own {s s' w}.
Arguments in_step_on {body workers program lines signals know rank wa pa} _ {s s' w i}.
Arguments knows_on {body workers program lines signals know rank wa pa} _ {s s' w i}.
Arguments not_advanced_on {body workers program lines signals know rank wa pa} _ {s s' w i}.
Arguments given_on {body workers program lines signals know rank wa pa} _ {s s' w i} k.
Arguments fine_initial {body workers program lines signals know rank wa pa}.
Arguments in_current {body workers program lines signals know rank wa pa} _ {s w i}.
Arguments at_size {body}.
Arguments all_given {body workers program lines signals know rank wa pa} _ {s k}.
Arguments went_step {s s' w}.
Arguments went_done {s s' w}.
Arguments went_place {s s' w}.
Arguments progress_other {s s' w u}.
Arguments progress_own {s s' w}.
