(* plow_verify BUNDLE [--json]: reads the bytes of a bundle and says whether they are proved to be right, and for which steps. *)
open Plow

type verdict = { accepted : bool; reason : string }

let hints (b : bundle) : int -> int -> int -> hint =
  let programs = Array.of_list b.b_programs in
  fun i token_tiles sample_tiles ->
    let p = programs.(i) in
    let code = step_code p (tensors_of p) (step_tiles token_tiles sample_tiles) in
    (Hints.play b.b_workers p.n_counters code).Hints.hint

(* Whatever goes wrong on the way is a reason to refuse. *)
let judge (b : bundle) : verdict =
  match verify b (hints b) with
  | true -> { accepted = true; reason = "" }
  | false -> { accepted = false; reason = Reason.find b }
  | exception e -> { accepted = false; reason = "the checker could not go on: " ^ Printexc.to_string e }

let read_file path =
  let channel = open_in_bin path in
  let bytes = really_input_string channel (in_channel_length channel) in
  close_in channel;
  bytes

let decode_string bytes =
  let n = String.length bytes in
  decode (fun i -> if i < n then Char.code (String.unsafe_get bytes i) else 0) n

let load path =
  let path = if Sys.file_exists path && Sys.is_directory path then Filename.concat path "model.pkt" else path in
  decode_string (read_file path)

let packets (p : program) = List.fold_left (fun n q -> n + List.length q) 0 p.queues

let json_string s =
  let b = Buffer.create (String.length s + 2) in
  Buffer.add_char b '"';
  String.iter (function
      | '"' -> Buffer.add_string b "\\\"" | '\\' -> Buffer.add_string b "\\\\"
      | c when c < ' ' -> Buffer.add_string b (Printf.sprintf "\\u%04x" (Char.code c))
      | c -> Buffer.add_char b c) s;
  Buffer.add_char b '"';
  Buffer.contents b

let report_json (b : bundle option) v seconds =
  let program i p =
    Printf.sprintf "{\"program\":%d,\"packets\":%d,\"token_tiles\":[1,%d],\"sample_tiles\":[0,%d]}" i (packets p)
      (most_tiles p 1) (most_tiles p 2) in
  let programs = match b with Some b -> List.mapi program b.b_programs | None -> [] in
  Printf.printf "{\"accepted\":%b,\"reason\":%s,\"seconds\":%.3f,\"programs\":[%s]}\n" v.accepted (json_string v.reason) seconds
    (String.concat "," programs)

let report_text (b : bundle option) v seconds =
  (match b with
   | None -> ()
   | Some b ->
     List.iteri (fun i p ->
         Printf.printf "program %d: %d packets on %d workers, every step of 1 to %d row tiles of tokens and 0 to %d of samples\n" i
           (packets p) b.b_workers (most_tiles p 1) (most_tiles p 2)) b.b_programs);
  if v.accepted then
    Printf.printf "accepted in %.2f s: no deadlock, no unordered conflict, every output made once and before it is read, \
                   all accesses in bounds, counter banks clear in every step\n" seconds
  else Printf.printf "rejected in %.2f s: %s\n" seconds v.reason

let verify_command path json =
  let start = Unix.gettimeofday () in
  let b, v =
    match load path with
    | Some b -> Some b, judge b
    | None -> None, { accepted = false; reason = "the file is not a bundle whose tables are in range" }
    | exception Sys_error e -> prerr_endline ("plow_verify: " ^ e); exit 2
    | exception e -> None, { accepted = false; reason = "the file cannot be decoded: " ^ Printexc.to_string e } in
  (if json then report_json else report_text) b v (Unix.gettimeofday () -. start);
  exit (if v.accepted then 0 else 1)

(* Many bundles on standard input, each after a line with its length: one line of verdict for each. *)
let stream () =
  set_binary_mode_in stdin true;
  let one () =
    let bytes = really_input_string stdin (int_of_string (input_line stdin)) in
    match decode_string bytes with
    | Some b -> judge b
    | None -> { accepted = false; reason = "the tables are out of range" }
    | exception e -> { accepted = false; reason = "the file cannot be decoded: " ^ Printexc.to_string e } in
  try
    while true do
      let v = one () in
      print_endline (if v.accepted then "accepted" else "rejected: " ^ v.reason)
    done
  with End_of_file -> ()

let usage () =
  prerr_endline "usage: plow_verify BUNDLE [--json]\n\
                 Says whether the bytes of a bundle (a directory that plowc wrote, or its model.pkt) are proved to be right.\n\
                 Exit status: 0 accepted, 1 rejected, 2 not readable.";
  exit 2

let () =
  match List.tl (Array.to_list Sys.argv) with
  | [ "--layout" ] -> Layout.print ()
  | [ "--footprints" ] -> Footprints.print ()
  | [ "--stream" ] -> stream ()
  | [ path ] when path <> "" && path.[0] <> '-' -> verify_command path false
  | [ path; "--json" ] | [ "--json"; path ] -> verify_command path true
  | _ -> usage ()
