(* SHA-256 (FIPS 180-4) of a string, in lower-case digits: the receipt names the bytes that were read. OCaml's own library has
   no digest that the C++ side has too. *)

let primes =
  let rec next found n =
    if List.length found = 64 then List.rev found
    else next (if List.exists (fun p -> n mod p = 0) found then found else n :: found) (n + 1) in
  next [] 2

(* The first 32 bits behind the point of the k-th root: floor(n^(1/k) * 2^32) mod 2^32, by whole numbers. *)
let root_bits k n =
  let wanted = Z.shift_left (Z.of_int n) (32 * k) in
  Z.to_int (Z.logand (Z.root wanted k) (Z.of_int 0xffffffff))

let start = Array.of_list (List.map (root_bits 2) (List.filteri (fun i _ -> i < 8) primes))
let rounds = Array.of_list (List.map (root_bits 3) primes)

let mask = 0xffffffff
let turn x n = ((x lsr n) lor (x lsl (32 - n))) land mask

(* 0x80, zeros, and the length in bits as 8 bytes, to whole blocks of 64. *)
let padded s =
  let n = String.length s in
  let bytes = Bytes.make ((n + 9 + 63) / 64 * 64) '\000' in
  Bytes.blit_string s 0 bytes 0 n;
  Bytes.set bytes n '\x80';
  Bytes.set_int64_be bytes (Bytes.length bytes - 8) (Int64.of_int (8 * n));
  bytes

let block bytes at state =
  let w = Array.make 64 0 in
  for t = 0 to 15 do w.(t) <- Int32.to_int (Bytes.get_int32_be bytes (at + 4 * t)) land mask done;
  for t = 16 to 63 do
    let s0 = turn w.(t - 15) 7 lxor turn w.(t - 15) 18 lxor (w.(t - 15) lsr 3)
    and s1 = turn w.(t - 2) 17 lxor turn w.(t - 2) 19 lxor (w.(t - 2) lsr 10) in
    w.(t) <- (w.(t - 16) + s0 + w.(t - 7) + s1) land mask
  done;
  let v = Array.copy state in
  for t = 0 to 63 do
    let a = v.(0) and e = v.(4) in
    let t1 = v.(7) + (turn e 6 lxor turn e 11 lxor turn e 25) + ((e land v.(5)) lxor (lnot e land mask land v.(6))) + rounds.(t) + w.(t)
    and t2 = (turn a 2 lxor turn a 13 lxor turn a 22) + ((a land v.(1)) lxor (a land v.(2)) lxor (v.(1) land v.(2))) in
    Array.blit v 0 v 1 7;
    v.(4) <- (v.(4) + t1) land mask;
    v.(0) <- (t1 + t2) land mask
  done;
  Array.iteri (fun i x -> state.(i) <- (state.(i) + x) land mask) v

let hex s =
  let state = Array.copy start in
  let bytes = padded s in
  for i = 0 to Bytes.length bytes / 64 - 1 do block bytes (64 * i) state done;
  String.concat "" (Array.to_list (Array.map (Printf.sprintf "%08x") state))
