(* Why a bundle was refused: looks for the first check that fails, in the order in which they are made. Not trusted: it only
   names what to look at. *)
open Plow

let rec first_index f i = function [] -> None | x :: r -> if f x then Some (i, x) else first_index f (i + 1) r

(* The packet, counted through the program, and the row tile that an instruction came from. *)
let packet_at (p : program) tiles w place =
  let tens = tensors_of p in
  let before = List.fold_left (fun n q -> n + List.length q) 0 (List.filteri (fun i _ -> i < w) p.queues) in
  let rec go i left = function
    | [] -> Printf.sprintf "worker %d, at the end of its queue" w
    | k :: rest ->
      let n = List.length (packet_instrs tiles (prepare tens (regions_of tens) k) []) in
      if left < n then Printf.sprintf "packet %d (worker %d)" (before + i) w else go (i + 1) (left - n) rest in
  go 0 place (List.nth p.queues w)

let in_tables (b : bundle) (p : program) =
  let tens = tensors_of p in
  match first_index (fun t -> not (tensor_ok b p t)) 0 p.tensor_table with
  | Some (i, _) -> Printf.sprintf "tensor %d is not inside its memory or does not hold the rows of every step" i
  | None ->
    match first_index (fun k -> not (packet_ok p tens k)) 0 (List.concat p.queues) with
    | Some (i, _) -> Printf.sprintf "packet %d does not fit its operator: its operands, columns, rows, counters or what it reads and writes are out of range" i
    | None -> "the program's tables do not fit each other (rows, row tiles, workers, layers of a cache that overlap, or heads of different sizes in one)"

let in_step (b : bundle) (p : program) tiles =
  let tens = tensors_of p in
  let code = step_code p tens tiles in
  let played = Hints.play b.b_workers p.n_counters code in
  let hint = played.Hints.hint in
  let cert = hint.h_certificate in
  let m = signal_map code in
  let at w place = packet_at p tiles w place in
  let links = link_map cert in
  let instr_fails w place i = not (check_instr p.n_counters cert links w place i) in
  let threshold_wrong w =
    let rec go place = function
      | [] -> None
      | (Wait (k, n) as i) :: r ->
        let promised = match M.find k m with Some l -> List.length l | None -> 0 in
        if n <> promised then Some (Printf.sprintf "%s waits for %d signals of counter %d, and %d are promised" (at w place) n k promised)
        else (ignore i; go (place + 1) r)
      | _ :: r -> go (place + 1) r in
    go 0 (List.nth code w) in
  let rec first_some f i n = if i = n then None else match f i with Some x -> Some x | None -> first_some f (i + 1) n in
  match first_some threshold_wrong 0 (List.length code) with
  | Some s -> s
  | None ->
    match played.Hints.stuck with
    | Some (w, place) -> at w place ^ " waits for ever: the queues' order and the waits form a circle"
    | None ->
      let worker_fails w = 
        Option.map (fun (place, _) -> at w place ^ " breaks the order of waits and signals")
          (let rec go place = function [] -> None | i :: r -> if instr_fails w place i then Some (place, i) else go (place + 1) r in
           go 0 (List.nth code w)) in
      match first_some worker_fails 0 (List.length code) with
      | Some s -> s
      | None ->
        if not (check_end b.b_workers cert code) then
          "the step's end is wrong: one Advance, last of its worker and after everything else, and a cleared bank, are right"
        else
          let bad = List.find_opt (fun (t, l) ->
              not (check_tensor b.b_workers cert tens (most_rows p) tiles hint.h_uses hint.h_floor t l)) (M.elements (touch_map code)) in
          match bad with
          | Some (t, l) ->
            (match first_index (fun x -> not (check_reads cert tens (List.filter writes_it l) None [ x ])) 0 (List.filter reads_it l) with
             | Some (_, ((w, place), _)) when is_output (tens t) ->
               Printf.sprintf "%s reads tensor %d before it is certain to be written" (at w place) t
             | _ -> Printf.sprintf "tensor %d is not written exactly once for every row and column" t)
          | None ->
            let clash = List.filter (fun tt -> not (check_pair b.b_workers hint.h_uses hint.h_floor tt)) (sharing_pairs p) in
            match clash with
            | (t, t') :: _ -> Printf.sprintf "tensors %d and %d share memory while both are in use" t t'
            | [] -> "the sampled tokens are never written"

let find (b : bundle) =
  let rec programs i = function
    | [] -> "the bundle is refused"
    | p :: rest ->
      if not (tables_ok b p (tensors_of p)) then Printf.sprintf "program %d: %s" i (in_tables b p)
      else
        let tens = tensors_of p in
        let sharing = sharing_pairs p and ready = prepared p tens in
        let rec steps t s =
          if t > most_tiles p 1 then programs (i + 1) rest
          else if s > most_tiles p 2 then steps (t + 1) 0
          else
            let tiles = step_tiles t s in
            let hints code = (Hints.play b.b_workers p.n_counters code).Hints.hint in
            if check_step b p tens sharing ready tiles hints then steps t (s + 1)
            else Printf.sprintf "program %d, a step of %d row tiles of tokens and %d of samples: %s" i t s (in_step b p tiles) in
        steps 1 0 in
  try programs 0 b.b_programs with e -> "a table is out of range (" ^ Printexc.to_string e ^ ")"
