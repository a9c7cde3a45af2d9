(* Reads instances of operators from standard input and says what the tiles of each read and write; compared with src/ops.
   A line: op, first column, end, five attributes, the number of operands, then kind, rows and columns of each. *)
open Plow

let print_region (g : region) =
  let rows = match g.g_rows with
    | TileRows -> "tile" | AllRows -> "all" | FixedRows (b, e) -> Printf.sprintf "fixed %d %d" b e in
  Printf.printf "  %d %s %s %d %d\n" g.g_operand (if g.g_writes then "writes" else "reads") rows g.g_first g.g_end

let answer line =
  match List.map int_of_string (String.split_on_char ' ' line) with
  | op :: first :: last :: a0 :: a1 :: a2 :: a3 :: a4 :: n :: rest ->
    let rec shapes k l =
      match k, l with
      | 0, [] -> []
      | _, kind :: rows :: cols :: r -> { o_kind = kind; o_rows = rows; o_cols = cols } :: shapes (k - 1) r
      | _ -> failwith "operands" in
    let operands = shapes n rest and attributes = [ a0; a1; a2; a3; a4 ] in
    let unit = if n = arity op then unit_of attributes operands op else 0 in
    Printf.printf "op %d arity %d unit %d kind %d\n" op (arity op) unit (kind_of op operands);
    if unit > 0 then List.iter print_region (footprint attributes operands first last op)
  | _ -> failwith "a line has too few numbers"

let print () = try while true do answer (input_line stdin) done with End_of_file -> ()
