(* The checker of waits and signals: for one step's code and a certificate, which anyone may have made, it says yes only when the
   certificate is right (Invariant.certified). *)
From Coq Require Import List SetoidList Arith Bool Lia.
From Plow Require Import Machine Invariant Loops.
Import ListNotations.

(* What the untrusted side says of one step's code. *)
Record certificate := {
  c_clock : nat -> nat -> nat;        (* a clock and a worker: how far the worker is at least *)
  c_segment : nat -> nat -> nat;      (* worker, place: the clock of what is known there *)
  c_full : nat -> nat -> nat;         (* counter, worker: how far the worker is once the counter has all its signals *)
  c_total : nat -> nat;               (* counter: how many signals it gets *)
  c_rank : nat -> nat -> nat;         (* worker, place: a number that grows along queues and from signals to waits *)
  c_top : nat -> nat;                 (* counter: the highest rank of its signals *)
  c_links : list (nat * (nat * nat)); (* counter, clock, clock: many workers learn the one step from the counter, which is checked once *)
  c_end_worker : nat; c_end_place : nat  (* where Advance is *)
}.

(* How far worker u is at least when worker w is at place p. *)
Definition c_know (cert : certificate) (w p u : nat) : nat := c_clock cert (c_segment cert w p) u.

Section Sync.
Variable body : Type.

Definition note_signal (w p : nat) (i : instr body) (m : M.t (list (nat * nat))) : M.t (list (nat * nat)) :=
  match i with Signal k => put k (w, p) m | _ => m end.
Definition note_worker (w : nat) (l : list (instr body)) (m : M.t (list (nat * nat))) : M.t (list (nat * nat)) :=
  fold_from (note_signal w) 0 l m.
Definition signal_map (c : code body) : M.t (list (nat * nat)) := fold_from note_worker 0 c (M.empty _).

Lemma note_worker_all : forall w k l p m v q,
  In (v, q) (get k (fold_from (note_signal w) p l m)) <->
  In (v, q) (get k m) \/ (v = w /\ exists j, q = p + j /\ nth_error l j = Some (Signal k)).
Proof.
  intros w k. induction l as [|i l IH]; intros p m v q; cbn [fold_from].
  - split; [now left|]. intros [H|(_ & j & _ & H)]; [exact H|destruct j; discriminate].
  - rewrite IH. assert (G : In (v, q) (get k (note_signal w p i m)) <-> In (v, q) (get k m) \/ (v = w /\ q = p /\ i = Signal k)).
    { unfold note_signal. destruct i; try (split; [now left|intros [H|(_ & _ & H)]; [exact H|discriminate]]).
      rewrite get_put. destruct (k =? c) eqn:E.
      - apply Nat.eqb_eq in E. subst c. cbn. split; [intros [H|H]; [injection H as <- <-; right; auto|now left]|].
        intros [H|(-> & -> & _)]; auto.
      - apply Nat.eqb_neq in E. split; [now left|]. intros [H|(_ & _ & H)]; [exact H|congruence]. }
    rewrite G. split.
    + intros [[H|(-> & -> & ->)]|(-> & j & -> & H)]; [now left| |].
      * right. split; [reflexivity|]. exists 0. split; [lia|reflexivity].
      * right. split; [reflexivity|]. exists (S j). split; [lia|exact H].
    + intros [H|(-> & j & -> & H)]; [now left; left|]. destruct j as [|j]; cbn in H.
      * left. right. injection H as <-. repeat split; lia.
      * right. split; [reflexivity|]. exists j. split; [lia|exact H].
Qed.

Lemma note_worker_once : forall w k l p m, NoDup (get k m) -> (forall v q, In (v, q) (get k m) -> v = w -> q < p) ->
  NoDup (get k (fold_from (note_signal w) p l m)).
Proof.
  intros w k. induction l as [|i l IH]; intros p m N B; [exact N|]. cbn [fold_from]. apply IH.
  - unfold note_signal. destruct i; try exact N. rewrite get_put. destruct (k =? c); [|exact N].
    constructor; [|exact N]. intro I. specialize (B _ _ I eq_refl). lia.
  - intros v q I E. unfold note_signal in I. destruct i; try (specialize (B v q I E); lia).
    rewrite get_put in I. destruct (k =? c); [|specialize (B v q I E); lia].
    destruct I as [I|I]; [injection I as <- <-; lia|specialize (B v q I E); lia].
Qed.

Lemma signals_from : forall k c w m v q,
  In (v, q) (get k (fold_from note_worker w c m)) <->
  In (v, q) (get k m) \/ (w <= v /\ nth_error (nth (v - w) c []) q = Some (Signal k)).
Proof.
  intros k. induction c as [|l c IH]; intros w m v q; cbn [fold_from].
  - split; [now left|]. intros [H|[_ H]]; [exact H|]. destruct (v - w), q; discriminate.
  - rewrite IH. unfold note_worker. rewrite note_worker_all. split.
    + intros [[H|(-> & j & -> & H)]|[L H]]; [now left| |].
      * right. split; [lia|]. rewrite Nat.sub_diag. exact H.
      * right. split; [lia|]. replace (v - w) with (S (v - S w)) by lia. exact H.
    + intros [H|[L H]]; [now left; left|]. destruct (Nat.eq_dec v w) as [->|N].
      * rewrite Nat.sub_diag in H. left. right. split; [reflexivity|]. exists q. split; [lia|exact H].
      * right. split; [lia|]. replace (v - w) with (S (v - S w)) in H by lia. exact H.
Qed.

Lemma signals_once_from : forall k c w m, NoDup (get k m) -> (forall v q, In (v, q) (get k m) -> v < w) ->
  NoDup (get k (fold_from note_worker w c m)).
Proof.
  intros k. induction c as [|l c IH]; intros w m N B; [exact N|]. cbn [fold_from]. apply IH.
  - apply note_worker_once; [exact N|]. intros v q I E. specialize (B v q I). lia.
  - intros v q I. apply note_worker_all in I. destruct I as [I|(-> & _)]; [specialize (B v q I); lia|lia].
Qed.

Variable workers lines : nat.
Variable cert : certificate.

(* What worker u is known to have done when worker v has given the signal at place q. *)
Definition told (v q u : nat) : nat := if v =? u then S q else c_know cert v q u.

(* The signals of a counter, each with what its giver knows there: clocks are looked up once, not for each worker. *)
Definition givers (l : list (nat * nat)) : list (nat * nat * (nat -> nat)) :=
  map (fun vq => (vq, c_clock cert (c_segment cert (fst vq) (snd vq)))) l.
Definition tells (u : nat) (x : nat * nat * (nat -> nat)) : nat := if fst (fst x) =? u then S (snd (fst x)) else snd x u.
Definition check_full (full : nat -> nat) (l : list (nat * nat * (nat -> nat))) : bool :=
  all_below (fun u => existsb (fun x => full u <=? tells u x) l) workers.

Definition check_counter (k : nat) (l : list (nat * nat)) : bool :=
  (k <? lines) && (length l =? c_total cert k) &&
  forallb (fun vq => c_rank cert (fst vq) (snd vq) <=? c_top cert k) l && check_full (c_full cert k) (givers l).

Definition keeps (w p : nat) : bool := c_segment cert w (S p) =? c_segment cert w p.

(* What worker w knows after a wait is what it knew, or what the full counter says. *)
Definition check_learnt (w : nat) (was is full : nat -> nat) : bool :=
  all_below (fun u => (u =? w) || (is u =? was u) || (was u <=? is u) && (is u <=? full u)) workers.

(* The same for whoever goes from the one clock to the other. *)
Definition check_link (l : nat * (nat * nat)) : bool :=
  (fun was is full => all_below (fun u => (was u <=? is u) && (is u <=? full u)) workers)
    (c_clock cert (fst (snd l))) (c_clock cert (snd (snd l))) (c_full cert (fst l)).
(* By the clock that they lead to: counter, and the clock that they come from. *)
Definition link_map : M.t (list (nat * nat)) :=
  fold_right (fun l m => put (snd (snd l)) (fst l, fst (snd l)) m) (M.empty _) (c_links cert).
Definition linked (links : M.t (list (nat * nat))) (k was is : nat) : bool :=
  existsb (fun x => (fst x =? k) && (snd x =? was)) (get is links).

Lemma linked_checked : forallb check_link (c_links cert) = true -> forall k was is, linked link_map k was is = true ->
  forall u, u < workers -> c_clock cert was u <= c_clock cert is u /\ c_clock cert is u <= c_full cert k u.
Proof.
  intros H k was is L u U. unfold linked in L. apply existsb_exists in L. destruct L as ((k', was') & I & L). cbn [fst snd] in L.
  apply andb_true_iff in L. destruct L as [L1 L2]. apply Nat.eqb_eq in L1, L2. subst k' was'.
  assert (J : In (k, (was, is)) (c_links cert)).
  { unfold link_map in I. clear H. induction (c_links cert) as [|(k', (a, b)) l IH]; cbn [fold_right] in I.
    - rewrite get_empty in I. destruct I.
    - rewrite get_put in I. cbn [fst snd] in I. destruct (is =? b) eqn:E; [|right; now apply IH].
      apply Nat.eqb_eq in E. subst b. destruct I as [I|I]; [left; congruence|right; now apply IH]. }
  rewrite forallb_forall in H. specialize (H _ J). unfold check_link in H. cbn [fst snd] in H.
  pose proof (all_below_sound _ _ H u U) as Z. cbn beta in Z. apply andb_true_iff in Z. rewrite !Nat.leb_le in Z. exact Z.
Qed.

Definition check_instr (links : M.t (list (nat * nat))) (m : M.t (list (nat * nat))) (w p : nat) (i : instr body) : bool :=
  (c_rank cert w p <=? c_rank cert w (S p)) &&
  match i with
  | Wait k n =>
      match M.find k m with
      | None => (n =? 0) && keeps w p
      | Some _ =>
          (n =? c_total cert k) && (c_top cert k <? c_rank cert w p) && (keeps w p || linked links k (c_segment cert w p) (c_segment cert w (S p)) ||
            check_learnt w (c_clock cert (c_segment cert w p)) (c_clock cert (c_segment cert w (S p))) (c_full cert k))
      end
  | Advance => (w =? c_end_worker cert) && (p =? c_end_place cert) && keeps w p
  | _ => keeps w p
  end.

Lemma wait_learns : forallb check_link (c_links cert) = true -> forall w p k u, u < workers -> u <> w ->
  keeps w p || linked link_map k (c_segment cert w p) (c_segment cert w (S p)) ||
  check_learnt w (c_clock cert (c_segment cert w p)) (c_clock cert (c_segment cert w (S p))) (c_full cert k) = true ->
  c_know cert w p u <= c_know cert w (S p) u /\
  (c_know cert w (S p) u <= c_know cert w p u \/ c_know cert w (S p) u <= c_full cert k u).
Proof.
  intros L w p k u U N H. unfold c_know. rewrite !orb_true_iff in H. destruct H as [[H|H]|H].
  - unfold keeps in H. apply Nat.eqb_eq in H. rewrite H. auto.
  - pose proof (linked_checked L _ _ _ H u U). tauto.
  - pose proof (all_below_sound _ _ H u U) as Y. cbn beta in Y. rewrite !orb_true_iff, andb_true_iff, !Nat.eqb_eq, !Nat.leb_le in Y.
    destruct Y as [[Y|Y]|Y]; [contradiction|rewrite Y; auto|tauto].
Qed.

Definition is_clear (i : instr body) : bool := match i with Clear => true | _ => false end.
Definition size_of (c : code body) (w : nat) : nat := length (nth w c []).

Definition check_end (c : code body) : bool :=
  (c_end_worker cert <? workers) &&
  match nth_error (nth (c_end_worker cert) c []) (c_end_place cert) with Some Advance => true | _ => false end &&
  (S (c_end_place cert) =? size_of c (c_end_worker cert)) &&
  all_from (fun u l => (u =? c_end_worker cert) || (length l <=? c_know cert (c_end_worker cert) (c_end_place cert) u)) 0 c &&
  existsb (existsb is_clear) c.

Definition check_worker (links m : M.t (list (nat * nat))) (w : nat) (l : list (instr body)) : bool :=
  negb (length l =? 0) && all_below (fun u => (u =? w) || (c_know cert w 0 u =? 0)) workers &&
  all_from (check_instr links m w) 0 l.

Definition check_sync (c : code body) : bool :=
  let m := signal_map c in
  let links := link_map in
  forallb check_link (c_links cert) &&
  ((length c =? workers) && all_lists check_counter m && all_from (check_worker links m) 0 c && check_end c).

Definition signals_of (c : code body) (k : nat) : list (nat * nat) := get k (signal_map c).

Lemma signals_of_all : forall c k v q, In (v, q) (signals_of c k) <-> nth_error (nth v c []) q = Some (Signal k).
Proof.
  intros c k v q. unfold signals_of, signal_map. rewrite signals_from, get_empty, Nat.sub_0_r. cbn. intuition lia.
Qed.

Theorem check_sync_sound : forall c, check_sync c = true ->
  certified body workers c lines (signals_of c) (c_know cert) (c_rank cert) (c_end_worker cert) (c_end_place cert).
Proof.
  intros c H. unfold check_sync in H. cbv zeta in H. rewrite !andb_true_iff in H. destruct H as [HK [[[HL HC] HW] HE]].
  apply Nat.eqb_eq in HL. unfold check_end in HE. rewrite !andb_true_iff in HE. destruct HE as [[[[E1 E2] E3] E4] E5].
  pose proof (all_lists_sound _ _ _ HC) as Counters.
  assert (Worker : forall w, w < workers -> check_worker link_map (signal_map c) w (nth w c []) = true).
  { intros w W. destruct (nth_error c w) as [l|] eqn:N; [|apply nth_error_None in N; lia].
    rewrite (nth_error_nth _ _ _ N). exact (all_from_sound _ _ _ _ HW w l N). }
  assert (Instr : forall w p i, w < workers -> at_ c w p = Some i -> check_instr link_map (signal_map c) w p i = true).
  { intros w p i W A. specialize (Worker w W). unfold check_worker in Worker. rewrite !andb_true_iff in Worker.
    destruct Worker as [_ Worker]. exact (all_from_sound _ _ _ _ Worker p i A). }
  assert (Counter : forall k, signals_of c k <> [] -> check_counter k (signals_of c k) = true) by exact Counters.
  assert (Kept : forall w p u, keeps w p = true -> u < workers -> u <> w -> c_know cert w (S p) u <= c_know cert w p u).
  { intros w p u K U N. unfold keeps in K. apply Nat.eqb_eq in K. unfold c_know. rewrite K. lia. }
  split.
  - intros w W. specialize (Worker w W). unfold check_worker in Worker. rewrite !andb_true_iff, negb_true_iff in Worker.
    destruct Worker as [[X _] _]. apply Nat.eqb_neq in X. unfold size. lia.
  - intro k. apply signals_once_from; rewrite get_empty; [constructor|intros v q []].
  - intros k v q. rewrite signals_of_all. unfold at_. split; [|tauto]. intro A. split; [|exact A].
    destruct (lt_dec v (length c)) as [L|L]; [lia|]. rewrite nth_overflow in A by lia. destruct q; discriminate.
  - intros k L. destruct (signals_of c k) as [|x l] eqn:Q; [reflexivity|]. exfalso.
    assert (K : check_counter k (signals_of c k) = true) by (apply Counter; rewrite Q; discriminate).
    unfold check_counter in K. rewrite !andb_true_iff in K. destruct K as [[[K _] _] _]. apply Nat.ltb_lt in K. lia.
  - intros w p k n W A. specialize (Instr w p _ W A). unfold check_instr in Instr. rewrite andb_true_iff in Instr.
    destruct Instr as [_ X]. unfold signals_of, get. destruct (M.find k (signal_map c)) as [l|] eqn:Fd.
    + rewrite !andb_true_iff in X. destruct X as [[X _] _]. apply Nat.eqb_eq in X. subst n.
      destruct l as [|y l].
      * (* a counter in the map has a list that is not empty, or its total says so *)
        pose proof HC as HC'. unfold all_lists in HC'. rewrite forallb_forall in HC'.
        apply M.find_2, M.elements_1, InA_alt in Fd. destruct Fd as ((k', l') & E & I). destruct E as [E1' E2']. cbn in E1', E2'. subst.
        specialize (HC' _ I). cbn in HC'. unfold check_counter in HC'. rewrite !andb_true_iff in HC'.
        destruct HC' as [[[_ X] _] _]. apply Nat.eqb_eq in X. cbn in X |- *. lia.
      * assert (K : check_counter k (signals_of c k) = true) by (apply Counter; unfold signals_of, get; rewrite Fd; discriminate).
        unfold check_counter, signals_of, get in K. rewrite Fd in K. rewrite !andb_true_iff in K.
        destruct K as [[[_ K] _] _]. apply Nat.eqb_eq in K. lia.
    + rewrite !andb_true_iff in X. destruct X as [X _]. apply Nat.eqb_eq in X. now rewrite X.
  - intros w u W U N. specialize (Worker w W). unfold check_worker in Worker. rewrite !andb_true_iff in Worker.
    destruct Worker as [[_ X] _]. pose proof (all_below_sound _ _ X u U) as Y. cbn in Y. apply orb_true_iff in Y.
    destruct Y as [Y|Y]; apply Nat.eqb_eq in Y; [contradiction|exact Y].
  - intros w p i u W U N A. specialize (Instr w p i W A). unfold check_instr in Instr. rewrite andb_true_iff in Instr.
    destruct Instr as [_ X]. destruct i as [k n|k|b| |]; try (left; now apply Kept).
    + destruct (M.find k (signal_map c)) as [l|] eqn:Fd.
      * rewrite !andb_true_iff in X. destruct X as [_ X].
        destruct (wait_learns HK w p k u U N X) as [_ [Y|Y]]; [now left|].
        (* the counter's knowledge comes from one of its signals *)
        pose proof HC as HC'. unfold all_lists in HC'. rewrite forallb_forall in HC'.
        pose proof Fd as Fd'. apply M.find_2, M.elements_1, InA_alt in Fd'. destruct Fd' as ((k', l') & E & I).
        destruct E as [E1' E2']. cbn in E1', E2'. subst. specialize (HC' _ I). cbn in HC'. unfold check_counter in HC'.
        rewrite !andb_true_iff in HC'. destruct HC' as [_ Z]. pose proof (all_below_sound _ _ Z u U) as Z'. cbn in Z'.
        apply existsb_exists in Z'. destruct Z' as (z & I' & Z'). apply in_map_iff in I'. destruct I' as ((v, q) & <- & I').
        apply Nat.leb_le in Z'. unfold tells in Z'. cbn [fst snd] in Z'.
        right. exists k', n, v, q. split; [reflexivity|]. split; [unfold signals_of, get; now rewrite Fd|].
        etransitivity; [exact Y|]. exact Z'.
      * rewrite andb_true_iff in X. destruct X as [_ X]. left. now apply Kept.
    + rewrite !andb_true_iff in X. destruct X as [_ X]. left. now apply Kept.
  - intros w p i W A. specialize (Instr w p i W A). unfold check_instr in Instr. rewrite andb_true_iff in Instr.
    destruct Instr as [X _]. now apply Nat.leb_le.
  - intros w p k n v q W A I. specialize (Instr w p _ W A). unfold check_instr in Instr. rewrite andb_true_iff in Instr.
    destruct Instr as [_ X].
    assert (K : check_counter k (signals_of c k) = true) by (apply Counter; intro Q; rewrite Q in I; destruct I).
    unfold check_counter in K. rewrite !andb_true_iff in K. destruct K as [[_ K] _].
    rewrite forallb_forall in K. specialize (K _ I). apply Nat.leb_le in K. cbn in K.
    unfold signals_of, get in I. destruct (M.find k (signal_map c)) as [l|] eqn:Fd; [|destruct I].
    rewrite !andb_true_iff in X. destruct X as [[_ X] _]. apply Nat.ltb_lt in X. lia.
  - apply existsb_exists in E5. destruct E5 as (l & I & E5). apply existsb_exists in E5. destruct E5 as (i & I' & E5).
    apply In_nth_error in I, I'. destruct I as (w & I), I' as (p & I'). exists w, p. split.
    + rewrite <- HL. apply nth_error_Some. congruence.
    + unfold at_. rewrite (nth_error_nth _ _ _ I), I'. destruct i; try discriminate. reflexivity.
  - apply Nat.ltb_lt in E1. split; [exact E1|]. unfold at_.
    destruct (nth_error (nth (c_end_worker cert) c []) (c_end_place cert)) as [[]|]; try discriminate. reflexivity.
  - apply Nat.eqb_eq in E3. exact E3.
  - intros u U N. destruct (nth_error c u) as [l|] eqn:Q; [|apply nth_error_None in Q; lia].
    pose proof (all_from_sound _ _ _ _ E4 u l Q) as X. cbn in X. apply orb_true_iff in X.
    destruct X as [X|X]; [apply Nat.eqb_eq in X; contradiction|]. apply Nat.leb_le in X.
    unfold size. now rewrite (nth_error_nth _ _ _ Q).
  - intros w p W A. specialize (Instr w p _ W A). unfold check_instr in Instr. rewrite !andb_true_iff in Instr.
    destruct Instr as [_ [[X Y] _]]. apply Nat.eqb_eq in X, Y. auto.
Qed.

(* What a worker knows only grows along its queue. *)
Lemma knowledge_grows : forall c, check_sync c = true -> forall w u p q, w < workers -> u < workers -> u <> w ->
  p <= q -> q < size c w -> c_know cert w p u <= c_know cert w q u.
Proof.
  intros c H w u p q W U N L. unfold check_sync in H. cbv zeta in H. rewrite !andb_true_iff in H. destruct H as [HK [[[HL _] HW] _]].
  apply Nat.eqb_eq in HL. induction L as [|q L IH]; intro Sz; [lia|]. etransitivity; [apply IH; lia|].
  destruct (nth_error c w) as [l|] eqn:Q; [|apply nth_error_None in Q; lia].
  pose proof (all_from_sound _ _ _ _ HW w l Q) as X. cbn in X. unfold check_worker in X. rewrite !andb_true_iff in X. destruct X as [_ X].
  unfold size in Sz. rewrite (nth_error_nth _ _ _ Q) in Sz.
  destruct (nth_error l q) as [i|] eqn:I; [|apply nth_error_None in I; lia].
  pose proof (all_from_sound _ _ _ _ X q i I) as Y. cbn in Y. unfold check_instr in Y. rewrite andb_true_iff in Y. destruct Y as [_ Y].
  assert (K : keeps w q = true -> c_know cert w q u <= c_know cert w (S q) u).
  { intro K. unfold keeps in K. apply Nat.eqb_eq in K. unfold c_know. rewrite K. lia. }
  destruct i as [k n|k|b| |]; try (now apply K).
  - destruct (M.find k (signal_map c)); rewrite !andb_true_iff in Y; [|now apply K].
    destruct Y as [_ Y]. exact (proj1 (wait_learns HK w q k u U N Y)).
  - rewrite !andb_true_iff in Y. now apply K.
Qed.

End Sync.
