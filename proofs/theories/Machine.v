(* The machine that plays a bundle: workers, each with a list of instructions a step, counters in three banks, and step after
   step without end. Small steps, in any interleaving. What a packet is made of becomes instructions in Expand.v.

   Memory here is sequentially consistent. That it is so for programs whose conflicting accesses are ordered by release and
   acquire is the memory model's part (TRUSTED.md); that they are ordered is proved here. *)
From Coq Require Import List Arith Bool Lia.
Import ListNotations.

Section Instr.
Variable body : Type.
Inductive instr :=
| Wait (c n : nat)     (* until counter c of the step's bank is at least n *)
| Signal (c : nat)     (* adds 1 to it *)
| Work (b : body)      (* reads and writes memory, in any number of small actions *)
| Clear                (* zeroes the bank of the step before *)
| Advance.             (* works on the step's columns, then lets the next step begin *)
Definition code := list (list instr).
End Instr.
Arguments Wait {body}. Arguments Signal {body}. Arguments Work {body}. Arguments Clear {body}. Arguments Advance {body}.

Definition at_ {body} (c : code body) (w p : nat) : option (instr body) := nth_error (nth w c []) p.
Definition size {body} (c : code body) (w : nat) : nat := length (nth w c []).

(* An action on memory: the k-th of the instruction at place p of worker w in step e. *)
Record action := { of_step : nat; of_worker : nat; of_place : nat; of_turn : nat }.

Definition set {A} (f : nat -> A) (i : nat) (v : A) : nat -> A := fun j => if j =? i then v else f j.

Section Machine.
Variable body : Type.
Variable workers : nat.
Variable program : nat -> code body.  (* of each step; the first step is number 0 *)
Variable lines : nat -> nat.          (* how many counters the program of a step has *)
Variable turns : nat -> nat -> nat -> nat.  (* step, worker, place: how many actions the work there takes *)

Record state := {
  step_of : nat -> nat;   (* by worker *)
  place : nat -> nat;     (* by worker: the instruction that is next *)
  turn : nat -> nat;      (* by worker: actions of it that were done *)
  bank : nat -> nat -> nat;  (* bank 0 .. 2, counter *)
  done : nat              (* how many steps were advanced over *)
}.

Definition initial : state :=
  {| step_of := fun _ => 0; place := fun _ => 0; turn := fun _ => 0; bank := fun _ _ => 0; done := 0 |}.

Definition counters_before (e : nat) : nat := match e with 0 => 0 | S e' => lines e' end.
Definition cleared (n : nat) (f : nat -> nat) : nat -> nat := fun c => if c <? n then 0 else f c.
Definition goes_on (s : state) (w : nat) : state :=
  {| step_of := step_of s; place := set (place s) w (S (place s w)); turn := set (turn s) w 0;
     bank := bank s; done := done s |}.

Inductive moves (s : state) (w : nat) : option action -> state -> Prop :=
| moves_wait : forall c n,
    at_ (program (step_of s w)) w (place s w) = Some (Wait c n) ->
    n <= bank s (step_of s w mod 3) c ->
    moves s w None (goes_on s w)
| moves_signal : forall c,
    at_ (program (step_of s w)) w (place s w) = Some (Signal c) ->
    moves s w None
      {| step_of := step_of s; place := set (place s) w (S (place s w)); turn := set (turn s) w 0;
         bank := set (bank s) (step_of s w mod 3)
                   (set (bank s (step_of s w mod 3)) c (S (bank s (step_of s w mod 3) c)));
         done := done s |}
| moves_clear :
    at_ (program (step_of s w)) w (place s w) = Some Clear ->
    moves s w None
      {| step_of := step_of s; place := set (place s) w (S (place s w)); turn := set (turn s) w 0;
         bank := set (bank s) ((step_of s w + 2) mod 3)
                   (cleared (counters_before (step_of s w)) (bank s ((step_of s w + 2) mod 3)));
         done := done s |}
| moves_act : forall i,
    at_ (program (step_of s w)) w (place s w) = Some i -> (exists b, i = Work b) \/ i = Advance ->
    turn s w < turns (step_of s w) w (place s w) ->
    moves s w (Some {| of_step := step_of s w; of_worker := w; of_place := place s w; of_turn := turn s w |})
      {| step_of := step_of s; place := place s; turn := set (turn s) w (S (turn s w)); bank := bank s; done := done s |}
| moves_worked : forall b,
    at_ (program (step_of s w)) w (place s w) = Some (Work b) ->
    turn s w = turns (step_of s w) w (place s w) ->
    moves s w None (goes_on s w)
| moves_advanced :
    at_ (program (step_of s w)) w (place s w) = Some Advance ->
    turn s w = turns (step_of s w) w (place s w) ->
    moves s w None
      {| step_of := step_of s; place := set (place s) w (S (place s w)); turn := set (turn s) w 0;
         bank := bank s; done := S (step_of s w) |}
| moves_next_step :
    place s w = size (program (step_of s w)) w ->
    step_of s w < done s ->
    moves s w None
      {| step_of := set (step_of s) w (S (step_of s w)); place := set (place s) w 0; turn := set (turn s) w 0;
         bank := bank s; done := done s |}.

(* An execution: any worker moves, any number of times. The trace holds its actions, oldest first. *)
Inductive runs : list action -> state -> Prop :=
| runs_nothing : runs [] initial
| runs_on : forall t s w a s', runs t s -> w < workers -> moves s w a s' ->
    runs (t ++ match a with Some x => [x] | None => [] end) s'.

End Machine.
