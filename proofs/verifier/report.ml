(* What is printed of a verdict: text for people, JSON for programs, and the receipt that a bundle carries (verify.json, read by
   src/bundle/receipt.h). A receipt holds nothing of time or place, so that the same bundle gets the same one. *)
open Plow

type verdict = {
  digest : string;          (* SHA-256 of the bytes that were read *)
  bundle : bundle option;   (* when they could be decoded *)
  reason : string option;   (* why they are refused *)
  firings : int;            (* of rewriting rules, that were replayed *)
}

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

let json_list item l = "[" ^ String.concat "," (List.map item l) ^ "]"
let json_object fields = "{" ^ String.concat "," (List.map (fun (k, v) -> json_string k ^ ":" ^ v) fields) ^ "}"

(* The steps that a program allows, all of which were checked. *)
let program_json (b : bundle) (p : program) =
  json_object [
    "workers", string_of_int b.b_workers; "packets", string_of_int (packets p);
    "tokens", Printf.sprintf "[1,%d]" p.max_rows; "samples", Printf.sprintf "[0,%d]" p.max_samples;
    "token_row_tiles", Printf.sprintf "[1,%d]" (most_tiles p 1); "sample_row_tiles", Printf.sprintf "[0,%d]" (most_tiles p 2) ]

let receipt_fields v = [
  "receipt", "1";
  "plow", json_string About.version;
  "bundle_format", string_of_int abi_version;
  "checker_sha256", json_string About.checker_sha256;
  "model_pkt_sha256", json_string v.digest;
  "accepted", string_of_bool (v.reason = None);
  "reason", json_string (Option.value v.reason ~default:"");
  "theorems", json_list json_string (if v.reason = None then About.theorems else []);
  "rewrites", string_of_int v.firings;
  "programs", (match v.bundle with Some b -> json_list (program_json b) b.b_programs | None -> "[]") ]

let receipt v = print_endline (json_object (receipt_fields v))

(* The most memory that this process has had, in bytes; 0 where the system does not say. *)
let peak_memory () =
  try
    let status = open_in "/proc/self/status" in
    let rec find () =
      match Scanf.sscanf (input_line status) "VmHWM: %d kB" (fun n -> n * 1024) with
      | n -> n
      | exception (Scanf.Scan_failure _ | Failure _) -> find () in
    let n = try find () with End_of_file -> 0 in
    close_in status;
    n
  with Sys_error _ -> 0

(* Of this process and its parts. *)
let processor_seconds () = let t = Unix.times () in t.tms_utime +. t.tms_stime +. t.tms_cutime +. t.tms_cstime

let json v seconds =
  print_endline (json_object (receipt_fields v @ [
    "seconds", Printf.sprintf "%.3f" seconds; "processor_seconds", Printf.sprintf "%.3f" (processor_seconds ()); "memory_bytes", string_of_int (peak_memory ()) ]))

let text v seconds =
  Option.iter (fun (b : bundle) ->
      List.iteri (fun i p ->
          Printf.printf "program %d: %d packets on %d workers, every step of 1 to %d row tiles of tokens and 0 to %d of samples\n" i
            (packets p) b.b_workers (most_tiles p 1) (most_tiles p 2)) b.b_programs) v.bundle;
  let megabytes = (peak_memory () + 999_999) / 1_000_000 in
  match v.reason with
  | None ->
    Printf.printf "accepted in %.2f s and %d MB: no deadlock, no unordered conflict, every output made once and before it is read, \
                   all accesses in bounds, counter banks clear in every step; %d rewrites replayed\n" seconds megabytes v.firings
  | Some reason -> Printf.printf "rejected in %.2f s and %d MB: %s\n" seconds megabytes reason
