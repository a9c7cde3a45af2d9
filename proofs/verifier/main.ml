(* plow_verify BUNDLE [--json | --receipt]: reads the bytes of a bundle and says whether they are proved to be right, and for which
   steps. *)
open Plow

let hints (b : bundle) : int -> access list code -> hint =
  let programs = Array.of_list b.b_programs in
  fun i code -> (Hints.play b.b_workers programs.(i).n_counters code).Hints.hint

(* Two processes, each with a part of the steps (parts_are_the_whole in Verify.v): they share no memory, so more would need as much more
   of it. A part that does not end with 0 is not accepted. *)
let parts = 2
let small = 4000  (* packets: below, a process costs more than it saves *)

let verify_in_parts (b : bundle) : bool =
  let packets = List.fold_left (fun n p -> n + Report.packets p) 0 b.b_programs in
  if packets < small then verify b (hints b)
  else begin
    let start j =
      match Unix.fork () with
      | 0 ->
        let accepted = try verify_part (in_part parts j) b (hints b) with _ -> false in
        Unix._exit (if accepted then 0 else 1)
      | child -> child in
    let others = List.init (parts - 1) (fun j -> start (j + 1)) in
    let mine = try verify_part (in_part parts 0) b (hints b) with _ -> false in
    List.fold_left (fun all child -> match Unix.waitpid [] child with _, Unix.WEXITED 0 -> all | _ -> false) mine others
  end

(* The numbers of SectionKind (src/abi/header.h). *)
let graph_text = 10 and rewrite_log = 11

(* A section of text. *)
let section bytes byte kind =
  if section_ok byte (String.length bytes) kind 1 then String.sub bytes (section_start byte kind) (section_elements byte kind)
  else raise (Replay.Refused (Printf.sprintf "section %d is not in the file" kind))

(* Whatever goes wrong on the way is a reason to refuse. *)
let judge bytes : Report.verdict =
  let n = String.length bytes in
  let byte i = if i < n then Char.code (String.unsafe_get bytes i) else 0 in
  let verdict bundle reason firings = { Report.digest = Sha256.hex bytes; bundle; reason; firings } in
  match decode byte n with
  | None -> verdict None (Some "the file is not a bundle of this format whose tables are in range") 0
  | exception e -> verdict None (Some ("the file cannot be decoded: " ^ Printexc.to_string e)) 0
  | Some b ->
    match verify_in_parts b with
    | false -> verdict (Some b) (Some (Reason.find b)) 0
    | exception e -> verdict (Some b) (Some ("the checker could not go on: " ^ Printexc.to_string e)) 0
    | true ->
      match Replay.check ~log:(section bytes byte rewrite_log) ~graph:(section bytes byte graph_text) with
      | firings -> verdict (Some b) None firings
      | exception Replay.Refused reason -> verdict (Some b) (Some reason) 0
      | exception e -> verdict (Some b) (Some ("the rewrite log cannot be replayed: " ^ Printexc.to_string e)) 0

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
  (* Most of what is made lives for a moment: a young generation of 2 MB, which stays in a cache, and the old one looked through less often. *)
  Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 18; space_overhead = 400 };
  match List.tl (Array.to_list Sys.argv) with
  | [ "--version" ] -> Printf.printf "plow_verify %s (bundle format %d, checker %s)\n" About.version abi_version About.checker_sha256
  | [ "--layout" ] -> Layout.print ()
  | [ "--footprints" ] -> Footprints.print ()
  | [ "--stream" ] -> stream ()
  | [ path ] when path <> "" && path.[0] <> '-' -> verify_command path Report.text
  | [ path; "--json" ] | [ "--json"; path ] -> verify_command path Report.json
  | [ path; "--receipt" ] | [ "--receipt"; path ] -> verify_command path (fun v _ -> Report.receipt v)
  | _ -> usage ()
