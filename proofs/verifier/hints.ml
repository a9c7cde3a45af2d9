(* Plays one step of a program and writes down what the checker wants to be told: who knows what, and in which order things
   can happen. Nothing here is trusted: a wrong hint makes the checker refuse. *)
open Plow

type played = { hint : hint; stuck : (int * int) option (* worker, place: where a worker waits for ever *) }

(* What a counter says to whoever waits for it at a clock: nothing new, news of one worker (none to that worker itself), or of several; and
   the clock after it. *)
type news = Nothing | Of of int | Several
type learnt = { news : news; after : int Lazy.t }

let larger (a : int) (b : int) = if a > b then a else b

(* Of all workers up to u: a clock says no more than another. *)
let rec within (a : int array) (b : int array) u = u < 0 || (a.(u) <= b.(u) && within a b (u - 1))

(* Of whom up to u the counter says more than the clock. *)
let rec news (clock : int array) (full : int array) u found =
  if u < 0 then found
  else if full.(u) <= clock.(u) then news clock full (u - 1) found
  else match found with Nothing -> news clock full (u - 1) (Of u) | _ -> Several

let says_nothing_to w = function Nothing -> true | Of u -> u = w | Several -> false

let play (workers : int) (counters : int) (code : access list code) : played =
  let left = Array.of_list code in  (* of each worker's queue: what is not played yet *)
  let n = Array.length left in
  let lines = counters + 1 in
  let total = Array.make lines 0 and given = Array.make lines 0 and top = Array.make lines 0 in
  let full = Array.init lines (fun _ -> [||]) and of_counter = Array.make lines (-1) and merged = Array.make lines (-1) in
  let known k = k >= 0 && k < counters in
  (* By tensor, and then by worker: the first and the last place at which it is touched; (1, 0) where it is not. *)
  let uses = ref (Array.make 1024 [||]) in
  let use w p (a : access) =
    let t = a.a_tensor in
    if t >= Array.length !uses then uses := Array.append !uses (Array.make t [||]);
    if Array.length !uses.(t) = 0 then !uses.(t) <- Array.make workers (1, 0);
    let by = !uses.(t) in
    let first, last = by.(w) in
    if last < first then by.(w) <- (p, p) else if p > last then by.(w) <- (first, p) in
  let finish = ref (0, 0) in
  Array.iteri (fun w queue -> List.iteri (fun p i ->
      match i with
      | Signal k when known k -> total.(k) <- total.(k) + 1
      | Work accesses -> List.iter (use w p) accesses
      | Advance -> finish := (w, p)
      | _ -> ()) queue) left;
  (* A clock says how far each worker is, at least; segment.(w).(p) is the clock of what w knows at p, the same where nothing was
     learnt. *)
  let clocks = ref (Array.make 1024 [||]) and n_clocks = ref 0 in
  let add_clock c =
    if !n_clocks = Array.length !clocks then clocks := Array.append !clocks (Array.make !n_clocks [||]);
    !clocks.(!n_clocks) <- c;
    incr n_clocks;
    !n_clocks - 1 in
  (* One clock for all who wait at one clock for one counter; one for all who know no more than the counter says. *)
  let learnt = Hashtbl.create 1024 in
  let clock_after k mine =
    if not (within mine full.(k) (workers - 1)) then add_clock (Array.mapi (fun u a -> larger a full.(k).(u)) mine)
    else begin
      if of_counter.(k) < 0 then of_counter.(k) <- add_clock full.(k);
      of_counter.(k)
    end in
  let nothing = add_clock (Array.make workers 0) in
  let of_places first = Array.map (fun queue -> Array.make (List.length queue + 1) first) left in
  let segment = of_places nothing and rank = of_places 0 in
  let clock = ref 0 and next = Array.make n 0 in
  let step w instr rest =
    let p = next.(w) in
    let known_here = segment.(w).(p) in
    let mine = !clocks.(known_here) in
    let go after =
      incr clock;
      rank.(w).(p) <- !clock; rank.(w).(p + 1) <- !clock;
      segment.(w).(p + 1) <- after; next.(w) <- p + 1; left.(w) <- rest; true in
    match instr with
    | Wait (k, _) when not (known k) || total.(k) = 0 -> go known_here
    | Wait (k, _) ->
      if given.(k) < total.(k) then false
      else begin
        let learnt =
          match Hashtbl.find_opt learnt (k, known_here) with
          | Some l -> l
          | None ->
            let l = { news = news mine full.(k) (workers - 1) Nothing; after = lazy (clock_after k mine) } in
            Hashtbl.add learnt (k, known_here) l;
            l in
        go (if says_nothing_to w learnt.news then known_here else Lazy.force learnt.after)
      end
    | Signal k when known k ->
      given.(k) <- given.(k) + 1;
      top.(k) <- !clock + 1;
      if Array.length full.(k) = 0 then full.(k) <- Array.make workers 0;
      let told = full.(k) in
      if merged.(k) <> known_here then begin
        for u = 0 to workers - 1 do told.(u) <- larger told.(u) mine.(u) done;
        merged.(k) <- known_here
      end;
      told.(w) <- larger told.(w) (p + 1);
      go known_here
    | _ -> go known_here in
  let moved = ref true in
  while !moved do
    moved := false;
    for w = 0 to n - 1 do
      while (match left.(w) with instr :: rest -> step w instr rest | [] -> false) do moved := true done
    done
  done;
  let stuck = ref None in
  for w = n - 1 downto 0 do if left.(w) <> [] then stuck := Some (w, next.(w)) done;
  (* How far each worker is when any of those who touch a tensor begins. Those who begin in one segment know the same but of themselves. *)
  let floor_of by =
    let floor = Array.make workers max_int in
    let lower w reached = if reached < floor.(w) then floor.(w) <- reached in
    let before = ref (-1, -1) in
    Array.iteri (fun v (first, last) ->
        if first <= last then begin
          let s = segment.(v).(first) in
          let clock = !clocks.(s) in
          let s', v' = !before in
          if s = s' then lower v' clock.(v')
          else Array.iteri (fun w reached -> lower w (if w = v then first else reached)) clock;
          before := (s, v)
        end) by;
    floor in
  let uses = !uses in
  let floors = Array.map floor_of uses in
  let certificate =
    { c_clock = (let clocks = !clocks in fun c -> let clock = clocks.(c) in fun u -> clock.(u));
      c_segment = (fun w p -> segment.(w).(p));
      c_full = (fun k -> let clock = full.(k) in fun u -> clock.(u));
      c_total = (fun k -> total.(k));
      c_rank = (fun w p -> rank.(w).(p));
      c_top = (fun k -> top.(k));
      c_links = Hashtbl.fold (fun (k, was) l all -> if Lazy.is_val l.after then (k, (was, Lazy.force l.after)) :: all else all) learnt [];
      c_end_worker = fst !finish; c_end_place = snd !finish } in
  { hint = { h_certificate = certificate;
             h_uses = (fun t w -> if t < Array.length uses && Array.length uses.(t) > 0 then uses.(t).(w) else (1, 0));
             h_floor = (fun t w -> if t < Array.length floors then floors.(t).(w) else max_int) };
    stuck = !stuck }
