(* plow_verify BUNDLE [--json | --receipt]: reads the bytes of a bundle and says whether they are proved to be right, and for which
   steps. *)
open Plow

let hints (b : bundle) : int -> int -> int -> hint =
  let programs = Array.of_list b.b_programs in
  fun i token_tiles sample_tiles ->
    let p = programs.(i) in
    let code = step_code p (tensors_of p) (step_tiles token_tiles sample_tiles) in
    (Hints.play b.b_workers p.n_counters code).Hints.hint

(* Whatever goes wrong on the way is a reason to refuse. *)
let refusal (b : bundle) : string option =
  match verify b (hints b) with
  | true -> None
  | false -> Some (Reason.find b)
  | exception e -> Some ("the checker could not go on: " ^ Printexc.to_string e)

let judge bytes : Report.verdict =
  let n = String.length bytes in
  let refuse reason = { Report.digest = Sha256.hex bytes; bundle = None; reason = Some reason } in
  match decode (fun i -> if i < n then Char.code (String.unsafe_get bytes i) else 0) n with
  | Some b -> { digest = Sha256.hex bytes; bundle = Some b; reason = refusal b }
  | None -> refuse "the file is not a bundle of this format whose tables are in range"
  | exception e -> refuse ("the file cannot be decoded: " ^ Printexc.to_string e)

let read_file path =
  let channel = open_in_bin path in
  let bytes = really_input_string channel (in_channel_length channel) in
  close_in channel;
  bytes

let verify_command path report =
  let start = Unix.gettimeofday () in
  let path = if Sys.file_exists path && Sys.is_directory path then Filename.concat path "model.pkt" else path in
  match read_file path with
  | bytes ->
    let v = judge bytes in
    report v (Unix.gettimeofday () -. start);
    exit (if v.reason = None then 0 else 1)
  | exception (Sys_error e) -> prerr_endline ("plow_verify: " ^ e); exit 2
  | exception End_of_file -> prerr_endline ("plow_verify: " ^ path ^ " ended while it was read"); exit 2

(* Many bundles on standard input, each after a line with its length: one line of verdict for each. *)
let stream () =
  set_binary_mode_in stdin true;
  try
    while true do
      let bytes = really_input_string stdin (int_of_string (input_line stdin)) in
      print_endline (match (judge bytes).reason with None -> "accepted" | Some reason -> "rejected: " ^ reason)
    done
  with End_of_file -> ()

let usage () =
  prerr_endline "usage: plow_verify BUNDLE [--json | --receipt]\n\
                 Says whether the bytes of a bundle (a directory that plowc wrote, or its model.pkt) are proved to be right.\n\
                 --json: as one object, with time and memory. --receipt: what a bundle carries of it (verify.json).\n\
                 Exit status: 0 accepted, 1 rejected, 2 not readable.";
  exit 2

let () =
  match List.tl (Array.to_list Sys.argv) with
  | [ "--version" ] -> Printf.printf "plow_verify %s (bundle format %d, checker %s)\n" About.version abi_version About.checker_sha256
  | [ "--layout" ] -> Layout.print ()
  | [ "--footprints" ] -> Footprints.print ()
  | [ "--stream" ] -> stream ()
  | [ path ] when path <> "" && path.[0] <> '-' -> verify_command path Report.text
  | [ path; "--json" ] | [ "--json"; path ] -> verify_command path Report.json
  | [ path; "--receipt" ] | [ "--receipt"; path ] -> verify_command path (fun v _ -> Report.receipt v)
  | _ -> usage ()
