(* The checker of waits and signals: for one step's code and a certificate, which anyone may have made, it says yes only when the
   certificate is right (Invariant.certified). *)
From Coq Require Import List Arith Bool Lia Wf_nat.
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
  c_links : list (nat * (nat * nat)); (* counter, clock, clock: whoever waits at the one clock for the counter has the other after it *)
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
(* Each worker's knowledge, from worker n - 1 down, is told by one of them. They come with the highest worker first, so the walk meets
   each where its own number is asked for; of a worker that is not among them, the next may tell, and if not, any. *)
Fixpoint from_worker (u : nat) (l : list (nat * nat * (nat -> nat))) : list (nat * nat * (nat -> nat)) :=
  match l with x :: r => if u <? fst (fst x) then from_worker u r else l | [] => [] end.
Fixpoint check_full_in (full : nat -> nat) (all l : list (nat * nat * (nat -> nat))) (n : nat) (less : Acc lt n) {struct less} : bool :=
  match Sumbool.sumbool_of_bool (n =? 0) with
  | left _ => true
  | right Z =>
      let u := n - 1 in
      let l' := from_worker u l in
      (match l' with x :: _ => full u <=? tells u x | [] => false end || existsb (fun x => full u <=? tells u x) all) &&
      check_full_in full all l' u (Acc_inv less (one_less n Z))
  end.
Definition check_full (full : nat -> nat) (l : list (nat * nat * (nat -> nat))) : bool := check_full_in full l l workers (lt_wf workers).

Lemma from_worker_in : forall u l x, In x (from_worker u l) -> In x l.
Proof. induction l as [|y l IH]; intros x I; [destruct I|]. cbn [from_worker] in I. destruct (u <? fst (fst y)); [right; apply IH|]; exact I. Qed.
Lemma check_full_from : forall full all m n (less : Acc lt n) l, n <= m -> (forall x, In x l -> In x all) ->
  check_full_in full all l n less = true -> forall u, u < n -> exists x, In x all /\ full u <= tells u x.
Proof.
  intros full all. induction m as [|m IH]; intros n [less] l L S H u U; [lia|]. cbn [check_full_in] in H. cbv zeta in H.
  destruct (Sumbool.sumbool_of_bool (n =? 0)) as [Z|Z]; [apply Nat.eqb_eq in Z; lia|]. apply andb_true_iff in H. destruct H as [H1 H2].
  assert (S' : forall x, In x (from_worker (n - 1) l) -> In x all) by (intros x I; exact (S x (from_worker_in _ _ _ I))).
  destruct (Nat.eq_dec u (n - 1)) as [->|N]; [|refine (IH (n - 1) _ _ _ S' H2 u _); lia].
  apply orb_true_iff in H1. destruct H1 as [H1|H1].
  - destruct (from_worker (n - 1) l) as [|x r]; [discriminate|]. exists x. split; [apply S'; now left|now apply Nat.leb_le].
  - apply existsb_exists in H1. destruct H1 as (x & I & H1). exists x. split; [exact I|now apply Nat.leb_le].
Qed.
Lemma check_full_sound : forall full l, check_full full l = true -> forall u, u < workers -> exists x, In x l /\ full u <= tells u x.
Proof. intros full l H. exact (check_full_from full l workers workers _ l (le_n _) (fun x I => I) H). Qed.

Definition check_counter (k : nat) (l : list (nat * nat)) : bool :=
  (k <? lines) && (length l =? c_total cert k) &&
  forallb (fun vq => c_rank cert (fst vq) (snd vq) <=? c_top cert k) l && check_full (c_full cert k) (givers l).

Definition keeps (w p : nat) : bool := c_segment cert w (S p) =? c_segment cert w p.

(* What is known after a wait is what was known, or what the full counter says: checked once for all who go from the one clock to the
   other. *)
Definition check_link (l : nat * (nat * nat)) : bool :=
  (fun was is full => all_below (fun u => (is u =? was u) || (was u <=? is u) && (is u <=? full u)) workers)
    (c_clock cert (fst (snd l))) (c_clock cert (snd (snd l))) (c_full cert (fst l)).
(* By the clock that they come from: counter, and the clock that they lead to. *)
Definition link_map : M.t (list (nat * nat)) :=
  fold_right (fun l m => put (fst (snd l)) (fst l, snd (snd l)) m) (M.empty _) (c_links cert).
Definition linked (links : M.t (list (nat * nat))) (k was is : nat) : bool :=
  existsb (fun x => (fst x =? k) && (snd x =? is)) (get was links).

Lemma linked_checked : forallb check_link (c_links cert) = true -> forall k was is, linked link_map k was is = true ->
  forall u, u < workers -> c_clock cert was u <= c_clock cert is u /\
    (c_clock cert is u <= c_clock cert was u \/ c_clock cert is u <= c_full cert k u).
Proof.
  intros H k was is L u U. unfold linked in L. apply existsb_exists in L. destruct L as ((k', is') & I & L). cbn [fst snd] in L.
  apply andb_true_iff in L. destruct L as [L1 L2]. apply Nat.eqb_eq in L1, L2. subst k' is'.
  assert (J : In (k, (was, is)) (c_links cert)).
  { unfold link_map in I. clear H. induction (c_links cert) as [|(k', (a, b)) l IH]; cbn [fold_right] in I.
    - rewrite get_empty in I. destruct I.
    - rewrite get_put in I. cbn [fst snd] in I. destruct (was =? a) eqn:E; [|right; now apply IH].
      apply Nat.eqb_eq in E. subst a. destruct I as [I|I]; [left; congruence|right; now apply IH]. }
  rewrite forallb_forall in H. specialize (H _ J). unfold check_link in H. cbn [fst snd] in H.
  pose proof (all_below_sound _ _ H u U) as Z. cbn beta in Z. rewrite orb_true_iff, andb_true_iff, Nat.eqb_eq, !Nat.leb_le in Z. lia.
Qed.

(* Counters that are said to get signals get some. *)
Definition check_totals (m : M.t (list (nat * nat))) : bool :=
  all_below (fun k => (c_total cert k =? 0) || match M.find k m with Some _ => true | None => false end) lines.

Definition check_instr (links : M.t (list (nat * nat))) (w p : nat) (i : instr body) : bool :=
  (c_rank cert w p <=? c_rank cert w (S p)) &&
  match i with
  | Wait k n =>
      if n =? 0 then (c_total cert k =? 0) && keeps w p
      else (n =? c_total cert k) && (k <? lines) && (c_top cert k <? c_rank cert w p) &&
           (keeps w p || linked links k (c_segment cert w p) (c_segment cert w (S p)))
  | Advance => (w =? c_end_worker cert) && (p =? c_end_place cert) && keeps w p
  | _ => keeps w p
  end.

Lemma wait_learns : forallb check_link (c_links cert) = true -> forall w p k u, u < workers ->
  keeps w p || linked link_map k (c_segment cert w p) (c_segment cert w (S p)) = true ->
  c_know cert w p u <= c_know cert w (S p) u /\
  (c_know cert w (S p) u <= c_know cert w p u \/ c_know cert w (S p) u <= c_full cert k u).
Proof.
  intros L w p k u U H. unfold c_know. apply orb_true_iff in H. destruct H as [H|H].
  - unfold keeps in H. apply Nat.eqb_eq in H. rewrite H. auto.
  - exact (linked_checked L _ _ _ H u U).
Qed.

Definition is_clear (i : instr body) : bool := match i with Clear => true | _ => false end.
Definition size_of (c : code body) (w : nat) : nat := length (nth w c []).

Definition check_end (c : code body) : bool :=
  (c_end_worker cert <? workers) &&
  match nth_error (nth (c_end_worker cert) c []) (c_end_place cert) with Some Advance => true | _ => false end &&
  (S (c_end_place cert) =? size_of c (c_end_worker cert)) &&
  all_from (fun u l => (u =? c_end_worker cert) || (length l <=? c_know cert (c_end_worker cert) (c_end_place cert) u)) 0 c &&
  existsb (existsb is_clear) c.

Definition check_worker (links : M.t (list (nat * nat))) (w : nat) (l : list (instr body)) : bool :=
  negb (length l =? 0) && all_below (fun u => (u =? w) || (c_know cert w 0 u =? 0)) workers &&
  all_from (check_instr links w) 0 l.

Definition check_sync (c : code body) : bool :=
  let m := signal_map c in
  let links := link_map in
  forallb check_link (c_links cert) && check_totals m &&
  ((length c =? workers) && all_lists check_counter m && all_from (check_worker links) 0 c && check_end c).

Definition signals_of (c : code body) (k : nat) : list (nat * nat) := get k (signal_map c).

Lemma signals_of_all : forall c k v q, In (v, q) (signals_of c k) <-> nth_error (nth v c []) q = Some (Signal k).
Proof.
  intros c k v q. unfold signals_of, signal_map. rewrite signals_from, get_empty, Nat.sub_0_r. cbn. intuition lia.
Qed.

Theorem check_sync_sound : forall c, check_sync c = true ->
  certified body workers c lines (signals_of c) (c_know cert) (c_rank cert) (c_end_worker cert) (c_end_place cert).
Proof.
  intros c H. unfold check_sync in H. cbv zeta in H. rewrite !andb_true_iff in H. destruct H as [[HK HT] [[[HL HC] HW] HE]].
  apply Nat.eqb_eq in HL. unfold check_end in HE. rewrite !andb_true_iff in HE. destruct HE as [[[[E1 E2] E3] E4] E5].
  pose proof (all_lists_sound _ _ _ HC) as Counters.
  assert (Worker : forall w, w < workers -> check_worker link_map w (nth w c []) = true).
  { intros w W. destruct (nth_error c w) as [l|] eqn:N; [|apply nth_error_None in N; lia].
    rewrite (nth_error_nth _ _ _ N). exact (all_from_sound _ _ _ _ HW w l N). }
  assert (Instr : forall w p i, w < workers -> at_ c w p = Some i -> check_instr link_map w p i = true).
  { intros w p i W A. specialize (Worker w W). unfold check_worker in Worker. rewrite !andb_true_iff in Worker.
    destruct Worker as [_ Worker]. exact (all_from_sound _ _ _ _ Worker p i A). }
  assert (Counter : forall k, signals_of c k <> [] -> check_counter k (signals_of c k) = true) by exact Counters.
  assert (Found : forall k l, M.find k (signal_map c) = Some l -> check_counter k l = true).
  { intros k l F. unfold all_lists in HC. rewrite forallb_forall in HC. exact (HC _ (M.elements_all _ _ _ _ F)). }
  assert (Total : forall k l, M.find k (signal_map c) = Some l -> length l = c_total cert k).
  { intros k l F. apply Found in F. unfold check_counter in F. rewrite !andb_true_iff in F. destruct F as [[[_ F] _] _]. now apply Nat.eqb_eq. }
  assert (There : forall k, k < lines -> c_total cert k <> 0 -> exists l, M.find k (signal_map c) = Some l).
  { intros k L N. pose proof (all_below_sound _ _ HT k L) as T. cbn beta in T. rewrite (proj2 (Nat.eqb_neq _ 0) N) in T.
    destruct (M.find k (signal_map c)) as [l|]; [now exists l|discriminate]. }
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
    destruct Instr as [_ X]. unfold signals_of, get. destruct (n =? 0) eqn:Z.
    + apply Nat.eqb_eq in Z. apply andb_true_iff in X. destruct X as [X _]. apply Nat.eqb_eq in X.
      destruct (M.find k (signal_map c)) as [l|] eqn:Fd; [rewrite (Total k l Fd); lia|exact Z].
    + apply Nat.eqb_neq in Z. rewrite !andb_true_iff, Nat.eqb_eq, !Nat.ltb_lt in X. destruct X as [[[X L] _] _].
      destruct (There k L) as (l & Fd); [lia|]. rewrite Fd, (Total k l Fd). exact X.
  - intros w u W U N. specialize (Worker w W). unfold check_worker in Worker. rewrite !andb_true_iff in Worker.
    destruct Worker as [[_ X] _]. pose proof (all_below_sound _ _ X u U) as Y. cbn in Y. apply orb_true_iff in Y.
    destruct Y as [Y|Y]; apply Nat.eqb_eq in Y; [contradiction|exact Y].
  - intros w p i u W U N A. specialize (Instr w p i W A). unfold check_instr in Instr. rewrite andb_true_iff in Instr.
    destruct Instr as [_ X]. destruct i as [k n|k|b| |]; try (left; now apply Kept).
    + destruct (n =? 0) eqn:Z; [rewrite andb_true_iff in X; destruct X as [_ X]; left; now apply Kept|].
      apply Nat.eqb_neq in Z. rewrite !andb_true_iff, Nat.eqb_eq, !Nat.ltb_lt in X. destruct X as [[[T L] _] X].
      destruct (wait_learns HK w p k u U X) as [_ [Y|Y]]; [now left|].
      (* the counter's knowledge comes from one of its signals *)
      destruct (There k L) as (l & Fd); [lia|]. pose proof (Found k l Fd) as K. unfold check_counter in K. rewrite !andb_true_iff in K.
      destruct (check_full_sound _ _ (proj2 K) u U) as (z & I' & Z'). apply in_map_iff in I'. destruct I' as ((v, q) & <- & I').
      unfold tells in Z'. cbn [fst snd] in Z'.
      right. exists k, n, v, q. split; [reflexivity|]. split; [unfold signals_of, get; now rewrite Fd|].
      etransitivity; [exact Y|]. exact Z'.
    + rewrite !andb_true_iff in X. destruct X as [_ X]. left. now apply Kept.
  - intros w p i W A. specialize (Instr w p i W A). unfold check_instr in Instr. rewrite andb_true_iff in Instr.
    destruct Instr as [X _]. now apply Nat.leb_le.
  - intros w p k n v q W A I. specialize (Instr w p _ W A). unfold check_instr in Instr. rewrite andb_true_iff in Instr.
    destruct Instr as [_ X].
    assert (K : check_counter k (signals_of c k) = true) by (apply Counter; intro Q; rewrite Q in I; destruct I).
    unfold check_counter in K. rewrite !andb_true_iff in K. destruct K as [[_ K] _].
    rewrite forallb_forall in K. specialize (K _ I). apply Nat.leb_le in K. cbn in K.
    unfold signals_of, get in I. destruct (M.find k (signal_map c)) as [l|] eqn:Fd; [|destruct I].
    destruct (n =? 0).
    + apply andb_true_iff in X. destruct X as [X _]. apply Nat.eqb_eq in X. rewrite <- (Total k l Fd) in X. destruct l; [destruct I|discriminate].
    + rewrite !andb_true_iff in X. destruct X as [[_ X] _]. apply Nat.ltb_lt in X. lia.
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
  intros c H w u p q W U N L. unfold check_sync in H. cbv zeta in H. rewrite !andb_true_iff in H. destruct H as [[HK _] [[[HL _] HW] _]].
  apply Nat.eqb_eq in HL. induction L as [|q L IH]; intro Sz; [lia|]. etransitivity; [apply IH; lia|].
  destruct (nth_error c w) as [l|] eqn:Q; [|apply nth_error_None in Q; lia].
  pose proof (all_from_sound _ _ _ _ HW w l Q) as X. cbn in X. unfold check_worker in X. rewrite !andb_true_iff in X. destruct X as [_ X].
  unfold size in Sz. rewrite (nth_error_nth _ _ _ Q) in Sz.
  destruct (nth_error l q) as [i|] eqn:I; [|apply nth_error_None in I; lia].
  pose proof (all_from_sound _ _ _ _ X q i I) as Y. cbn in Y. unfold check_instr in Y. rewrite andb_true_iff in Y. destruct Y as [_ Y].
  assert (K : keeps w q = true -> c_know cert w q u <= c_know cert w (S q) u).
  { intro K. unfold keeps in K. apply Nat.eqb_eq in K. unfold c_know. rewrite K. lia. }
  destruct i as [k n|k|b| |]; try (now apply K).
  - destruct (n =? 0); rewrite !andb_true_iff in Y; [now apply K|].
    destruct Y as [_ Y]. exact (proj1 (wait_learns HK w q k u U Y)).
  - rewrite !andb_true_iff in Y. now apply K.
Qed.

End Sync.
