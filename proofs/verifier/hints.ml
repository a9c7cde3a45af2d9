(* Plays one step of a program and writes down what the checker wants to be told: who knows what, and in which order things
   can happen. Nothing here is trusted: a wrong hint makes the checker refuse. *)
open Plow

type played = { hint : hint; stuck : (int * int) option (* worker, place: where a worker waits for ever *) }

let larger (a : int) (b : int) = if a > b then a else b

(* Of all workers up to u but w, who knows of itself: a clock says no more than another. *)
let rec within (a : int array) (b : int array) w u = u < 0 || ((u = w || a.(u) <= b.(u)) && within a b w (u - 1))

let play (workers : int) (counters : int) (code : access list code) : played =
  let queues = Array.of_list (List.map Array.of_list code) in
  let n = Array.length queues in
  let size w = Array.length queues.(w) in
  let lines = counters + 1 in
  let total = Array.make lines 0 and given = Array.make lines 0 and top = Array.make lines 0 in
  let full = Array.init lines (fun _ -> [||]) and of_counter = Array.make lines (-1) in
  let known k = k >= 0 && k < counters in
  let uses : (int, (int, int * int) Hashtbl.t) Hashtbl.t = Hashtbl.create 1024 in
  let use w p (a : access) =
    let by =
      match Hashtbl.find_opt uses a.a_tensor with
      | Some by -> by
      | None -> let by = Hashtbl.create 8 in Hashtbl.add uses a.a_tensor by; by in
    match Hashtbl.find_opt by w with
    | Some (first, last) -> Hashtbl.replace by w (min first p, larger last p)
    | None -> Hashtbl.add by w (p, p) in
  let finish = ref (0, 0) in
  Array.iteri (fun w queue -> Array.iteri (fun p i ->
      match i with
      | Signal k when known k -> total.(k) <- total.(k) + 1
      | Work accesses -> List.iter (use w p) accesses
      | Advance -> finish := (w, p)
      | _ -> ()) queue) queues;
  (* A clock says how far each worker is, at least; segment.(w).(p) is the clock of what w knows at p, the same where nothing was
     learnt. *)
  let clocks = ref (Array.make 1024 [||]) and n_clocks = ref 0 in
  let add_clock c =
    if !n_clocks = Array.length !clocks then clocks := Array.append !clocks (Array.make !n_clocks [||]);
    !clocks.(!n_clocks) <- c;
    incr n_clocks;
    !n_clocks - 1 in
  let links = Hashtbl.create 1024 in
  let nothing = add_clock (Array.make workers 0) in
  let segment = Array.init n (fun w -> Array.make (size w + 1) nothing) in
  let rank = Array.init n (fun w -> Array.make (size w + 1) 0) in
  let clock = ref 0 and next = Array.make n 0 in
  let step w =
    let p = next.(w) in
    let known_here = segment.(w).(p) in
    let mine = !clocks.(known_here) in
    let go after =
      incr clock;
      rank.(w).(p) <- !clock; rank.(w).(p + 1) <- !clock;
      segment.(w).(p + 1) <- after; next.(w) <- p + 1; true in
    match queues.(w).(p) with
    | Wait (k, _) when not (known k) || total.(k) = 0 -> go known_here
    | Wait (k, _) ->
      if given.(k) < total.(k) then false
      else if within full.(k) mine w (workers - 1) then go known_here
      else if within mine full.(k) w (workers - 1) then begin
        (* Whoever learns no more than the counter says has its clock, of which there is one. *)
        if of_counter.(k) < 0 then of_counter.(k) <- add_clock full.(k);
        let link = (k, (known_here, of_counter.(k))) in
        if not (Hashtbl.mem links link) && within mine full.(k) (-1) (workers - 1) then Hashtbl.add links link ();
        go of_counter.(k)
      end
      else go (add_clock (Array.mapi (fun u a -> larger a full.(k).(u)) mine))
    | Signal k when known k ->
      given.(k) <- given.(k) + 1;
      top.(k) <- !clock + 1;
      let told = if Array.length full.(k) = 0 then Array.make workers 0 else full.(k) in
      for u = 0 to workers - 1 do told.(u) <- larger told.(u) (if u = w then p + 1 else mine.(u)) done;
      full.(k) <- told;
      go known_here
    | _ -> go known_here in
  let moved = ref true in
  while !moved do
    moved := false;
    for w = 0 to n - 1 do
      while next.(w) < size w && step w do moved := true done
    done
  done;
  let stuck = ref None in
  for w = n - 1 downto 0 do if next.(w) < size w then stuck := Some (w, next.(w)) done;
  let listed = Hashtbl.create 1024 in
  Hashtbl.iter (fun t by -> Hashtbl.add listed t (Hashtbl.fold (fun w fl l -> (w, fl) :: l) by [])) uses;
  (* How far each worker is when any of those who touch a tensor begins. *)
  let floors = Hashtbl.create 1024 in
  Hashtbl.iter (fun t users ->
      let floor = Array.make workers max_int in
      List.iter (fun (v, (first, _)) ->
          let clock = !clocks.(segment.(v).(first)) in
          for w = 0 to workers - 1 do
            let reached = if w = v then first else clock.(w) in
            if reached < floor.(w) then floor.(w) <- reached
          done) users;
      Hashtbl.add floors t floor) listed;
  let certificate =
    { c_clock = (let clocks = !clocks in fun c -> let clock = clocks.(c) in fun u -> clock.(u));
      c_segment = (fun w p -> segment.(w).(p));
      c_full = (fun k -> let clock = full.(k) in fun u -> clock.(u));
      c_total = (fun k -> total.(k));
      c_rank = (fun w p -> rank.(w).(p));
      c_top = (fun k -> top.(k));
      c_links = Hashtbl.fold (fun link () l -> link :: l) links [];
      c_end_worker = fst !finish; c_end_place = snd !finish } in
  { hint = { h_certificate = certificate;
             h_uses = (fun t -> match Hashtbl.find_opt listed t with Some l -> l | None -> []);
             h_floor = (fun t w -> match Hashtbl.find_opt floors t with Some f -> f.(w) | None -> max_int) };
    stuck = !stuck }
