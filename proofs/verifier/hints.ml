(* Plays one step of a program and writes down what the checker wants to be told: who knows what, and in which order things
   can happen. Nothing here is trusted: a wrong hint makes the checker refuse. *)
open Plow

type played = { hint : hint; stuck : (int * int) option (* worker, place: where a worker waits for ever *) }

let play (workers : int) (counters : int) (code : access list code) : played =
  let queues = Array.of_list (List.map Array.of_list code) in
  let n = Array.length queues in
  let size w = Array.length queues.(w) in
  let lines = counters + 1 in
  let total = Array.make lines 0 and given = Array.make lines 0 and top = Array.make lines 0 in
  let full = Array.init lines (fun _ -> [||]) in
  let known k = k >= 0 && k < counters in
  let uses : (int, (int, int * int) Hashtbl.t) Hashtbl.t = Hashtbl.create 1024 in
  let use w p (a : access) =
    let by =
      match Hashtbl.find_opt uses a.a_tensor with
      | Some by -> by
      | None -> let by = Hashtbl.create 8 in Hashtbl.add uses a.a_tensor by; by in
    match Hashtbl.find_opt by w with
    | Some (first, last) -> Hashtbl.replace by w (min first p, max last p)
    | None -> Hashtbl.add by w (p, p) in
  let finish = ref (0, 0) in
  Array.iteri (fun w queue -> Array.iteri (fun p i ->
      match i with
      | Signal k when known k -> total.(k) <- total.(k) + 1
      | Work accesses -> List.iter (use w p) accesses
      | Advance -> finish := (w, p)
      | _ -> ()) queue) queues;
  (* know.(w).(p): how far each worker is, at least, when w is at p. Neighbours share one array where nothing was learnt. *)
  let know = Array.init n (fun w -> Array.make (size w + 1) [||]) in
  let rank = Array.init n (fun w -> Array.make (size w + 1) 0) in
  for w = 0 to n - 1 do know.(w).(0) <- Array.make workers 0 done;
  let clock = ref 0 and next = Array.make n 0 in
  let step w =
    let p = next.(w) in
    let mine = know.(w).(p) in
    let go after =
      incr clock;
      rank.(w).(p) <- !clock; rank.(w).(p + 1) <- !clock;
      know.(w).(p + 1) <- after; next.(w) <- p + 1; true in
    match queues.(w).(p) with
    | Wait (k, _) when not (known k) || total.(k) = 0 -> go mine
    | Wait (k, _) ->
      if given.(k) < total.(k) then false
      else if Array.for_all2 (fun a b -> b <= a) mine full.(k) then go mine
      else go (Array.mapi (fun u a -> if u = w then a else max a full.(k).(u)) mine)
    | Signal k when known k ->
      given.(k) <- given.(k) + 1;
      top.(k) <- !clock + 1;
      let told = if full.(k) = [||] then Array.make workers 0 else full.(k) in
      Array.iteri (fun u a -> told.(u) <- max told.(u) (if u = w then p + 1 else a)) mine;
      full.(k) <- told;
      go mine
    | _ -> go mine in
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
  let certificate =
    { c_know = (fun w p u -> know.(w).(p).(u));
      c_full = (fun k u -> full.(k).(u));
      c_total = (fun k -> total.(k));
      c_rank = (fun w p -> rank.(w).(p));
      c_top = (fun k -> top.(k));
      c_end_worker = fst !finish; c_end_place = snd !finish } in
  { hint = { h_certificate = certificate;
             h_uses = (fun t -> match Hashtbl.find_opt listed t with Some l -> l | None -> []) };
    stuck = !stuck }
