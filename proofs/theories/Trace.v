(* Traces of atomic actions by several workers: two traces in which every worker does the same and which never reverse an
   order that conflicts need leave the same store. Nothing here knows of packets. *)
From Coq Require Import List Arith Bool Lia.
Import ListNotations.

Section Trace.
Variables (action worker location value : Type).
Variable worker_dec : forall a b : worker, {a = b} + {a <> b}.
Variable who : action -> worker.

Definition store := location -> value.
Definition same_store (s t : store) : Prop := forall l, s l = t l.

(* What an action does, where it may look (touch) and what of that it may change (change). *)
Variable perform : action -> store -> store.
Variables touch change : action -> location -> bool.
Hypothesis change_is_touch : forall a l, change a l = true -> touch a l = true.
Hypothesis only_changes : forall a s l, change a l = false -> perform a s l = s l.
Hypothesis only_touches : forall a s t,
  (forall l, touch a l = true -> s l = t l) -> forall l, change a l = true -> perform a s l = perform a t l.

Definition conflict (a b : action) : Prop :=
  exists l, (change a l = true /\ touch b l = true) \/ (touch a l = true /\ change b l = true).

(* must x y: x comes before y wherever both are. *)
Variable must : action -> action -> Prop.
Hypothesis conflicts_are_ordered : forall a b, who a <> who b -> conflict a b -> must a b \/ must b a.

Definition exec (t : list action) (s : store) : store := fold_left (fun s a => perform a s) t s.
Definition part (w : worker) (t : list action) : list action :=
  filter (fun a => if worker_dec (who a) w then true else false) t.
Definition ordered (t : list action) : Prop :=
  forall t1 y t2 x t3, t = t1 ++ y :: t2 ++ x :: t3 -> ~ must x y.

Lemma perform_same : forall a s t, same_store s t -> same_store (perform a s) (perform a t).
Proof.
  intros a s t H l. destruct (change a l) eqn:C.
  - apply only_touches; auto.
  - rewrite !only_changes by assumption. apply H.
Qed.

Lemma exec_same : forall t s s', same_store s s' -> same_store (exec t s) (exec t s').
Proof. induction t as [|a t IH]; intros s s' H; [exact H|]. apply IH, perform_same, H. Qed.

Lemma commute : forall a b s, ~ conflict a b -> same_store (perform a (perform b s)) (perform b (perform a s)).
Proof.
  intros a b s N l.
  assert (Hab : forall l, change a l = true -> touch b l = false).
  { intros l' C. destruct (touch b l') eqn:T; auto. exfalso. apply N. exists l'. auto. }
  assert (Hba : forall l, change b l = true -> touch a l = false).
  { intros l' C. destruct (touch a l') eqn:T; auto. exfalso. apply N. exists l'. auto. }
  destruct (change a l) eqn:Ca.
  - assert (Cb : change b l = false).
    { destruct (change b l) eqn:C; auto. apply change_is_touch in C. rewrite (Hab l Ca) in C. discriminate. }
    rewrite (only_changes b _ l Cb). apply only_touches; [|exact Ca].
    intros l' T. apply only_changes. destruct (change b l') eqn:C; auto. rewrite (Hba l' C) in T. discriminate.
  - rewrite (only_changes a _ l Ca). destruct (change b l) eqn:Cb.
    + apply only_touches; [|exact Cb]. intros l' T. symmetry. apply only_changes.
      destruct (change a l') eqn:C; auto. rewrite (Hab l' C) in T. discriminate.
    + rewrite !only_changes by assumption. reflexivity.
Qed.

Lemma move_to_front : forall p x s, (forall y, In y p -> ~ conflict y x) ->
  same_store (exec (p ++ [x]) s) (exec (x :: p) s).
Proof.
  induction p as [|y p IH]; intros x s H; [intro l; reflexivity|].
  cbn [app exec fold_left]. intro l.
  transitivity (exec (x :: p) (perform y s) l); [apply IH; intros; apply H; now right|].
  cbn [exec fold_left]. apply exec_same, commute.
  intros [l' C]. apply (H y (or_introl eq_refl)). exists l'. tauto.
Qed.

Lemma ordered_tail : forall x t, ordered (x :: t) -> ordered t.
Proof. intros x t H t1 y t2 z t3 E. apply (H (x :: t1) y t2 z t3). now rewrite E. Qed.

Lemma ordered_drop : forall p x q, ordered (p ++ x :: q) -> ordered (p ++ q).
Proof.
  intros p x q H t1 y t2 z t3 E.
  (* put x back where it was *)
  assert (K : forall (p q t1 t2 t3 : list action) y z, p ++ q = t1 ++ y :: t2 ++ z :: t3 ->
    exists u1 u2 u3, p ++ x :: q = u1 ++ y :: u2 ++ z :: u3).
  { clear. intros p q t1 t2 t3 y z E.
    revert t1 E. induction p as [|a p IH]; intros t1 E.
    - exists (x :: t1), t2, t3. cbn in *. now rewrite E.
    - destruct t1 as [|b t1]; cbn in E; injection E as -> E.
      + (* y is the head of p; x goes somewhere behind *)
        clear IH. assert (K : exists u2 u3, p ++ x :: q = u2 ++ z :: u3).
        { revert t2 E. induction p as [|a p IH]; intros t2 E.
          - exists (x :: t2), t3. cbn in *. now rewrite E.
          - destruct t2 as [|b t2]; cbn in E; injection E as -> E.
            + exists [], (p ++ x :: q). reflexivity.
            + destruct (IH t2 E) as (u2 & u3 & K). exists (b :: u2), u3. cbn. now rewrite K. }
        destruct K as (u2 & u3 & K). exists [], u2, u3. cbn. now rewrite K.
      + destruct (IH t1 E) as (u1 & u2 & u3 & K). exists (b :: u1), u2, u3. cbn. now rewrite K. }
  destruct (K p q t1 t2 t3 y z E) as (u1 & u2 & u3 & K').
  apply (H u1 y u2 z u3 K').
Qed.

Lemma part_app : forall w s t, part w (s ++ t) = part w s ++ part w t.
Proof. intros. apply filter_app. Qed.

Lemma part_own : forall x t, part (who x) (x :: t) = x :: part (who x) t.
Proof. intros x t. cbn. destruct (worker_dec (who x) (who x)); [reflexivity|congruence]. Qed.

Lemma part_other : forall w x t, who x <> w -> part w (x :: t) = part w t.
Proof. intros w x t N. cbn. destruct (worker_dec (who x) w); [congruence|reflexivity]. Qed.

Lemma in_part : forall y t, In y t <-> In y (part (who y) t).
Proof.
  intros y t. unfold part. rewrite filter_In. destruct (worker_dec (who y) (who y)) as [_|N]; [|congruence]. tauto.
Qed.

(* The first action of a worker in a trace, and what comes before it. *)
Lemma split_at_first : forall w x t r, who x = w -> part w t = x :: r ->
  exists p q, t = p ++ x :: q /\ part w p = [] /\ part w q = r.
Proof.
  intros w x t. induction t as [|y t IH]; intros r W E; [discriminate|].
  destruct (worker_dec (who y) w) as [Y|Y].
  - subst w. rewrite <- Y in E. rewrite part_own in E. injection E as -> E.
    exists [], t. auto.
  - rewrite part_other in E by exact Y. destruct (IH r W E) as (p & q & -> & P & Q).
    exists (y :: p), q. split; [reflexivity|]. now rewrite part_other.
Qed.

Theorem same_parts_same_store : forall t1 t2,
  (forall w, part w t1 = part w t2) -> ordered t1 -> ordered t2 ->
  forall s, same_store (exec t1 s) (exec t2 s).
Proof.
  induction t1 as [|x t1 IH]; intros t2 P O1 O2 s.
  - destruct t2 as [|y t2]; [intro l; reflexivity|].
    specialize (P (who y)). rewrite part_own in P. discriminate.
  - pose proof (P (who x)) as Px. rewrite part_own in Px. symmetry in Px.
    destruct (split_at_first _ _ _ _ eq_refl Px) as (p & q & -> & Pp & Pq).
    assert (Free : forall y, In y p -> ~ conflict y x).
    { intros y Hy C.
      assert (W : who y <> who x).
      { intro W. apply in_part in Hy. rewrite W, Pp in Hy. exact Hy. }
      assert (In1 : In y t1).
      { apply in_part. specialize (P (who y)). rewrite part_other in P by (intro; apply W; congruence).
        rewrite P, part_app. apply in_or_app. left. now apply in_part in Hy. }
      destruct (conflicts_are_ordered y x W C) as [M|M].
      - apply in_split in In1. destruct In1 as (a & b & ->). exact (O1 [] x a y b eq_refl M).
      - apply in_split in Hy. destruct Hy as (a & b & ->). apply (O2 a y b x q); [|exact M].
        now rewrite <- app_assoc. }
    assert (P' : forall w, part w t1 = part w (p ++ q)).
    { intro w. rewrite part_app. destruct (worker_dec (who x) w) as [<-|N].
      - now rewrite Pp, Pq.
      - specialize (P w). rewrite part_app, !part_other in P by exact N. exact P. }
    intro l. cbn [exec fold_left].
    transitivity (exec (p ++ q) (perform x s) l).
    + apply IH; [exact P'|exact (ordered_tail _ _ O1)|exact (ordered_drop _ _ _ O2)].
    + unfold exec. rewrite !fold_left_app. cbn [fold_left].
      apply (exec_same q). intro l'. symmetry.
      pose proof (move_to_front p x s Free l') as M. unfold exec in M. rewrite fold_left_app in M. exact M.
Qed.

End Trace.
