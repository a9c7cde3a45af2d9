(* Replays a bundle's rewrite log: every firing must be an instance of a proved rule over nodes that are equal by then, as the rule's
   theorem asks (proofs/rules), and in the end the graph that was compiled must compute what the graph as it was did. Written by hand
   and not extracted: it shares the rules' texts with the rewriter and the theorems, and with src/rewrite/replay.cpp, which does the same
   in the compiler, no code. Types are taken as the log gives them; the compiler's replay infers them. *)

exception Refused of string

let refuse format = Printf.ksprintf (fun s -> raise (Refused ("rewrite log: " ^ s))) format

(* ---- Graphs: a line a node, as print_graph() writes them *)
type node = {
  op : string;
  leaf : string;                        (* of a leaf: all that tells it from others; "" of an operator *)
  inputs : int array;
  attributes : (string * string) list;  (* as printed: the shortest digits, so equal values have equal texts *)
  typ : string;
  cols : int;
}

let is_digit c = c >= '0' && c <= '9'
let number s = match int_of_string_opt s with
  | Some n when String.for_all is_digit s -> n
  | _ -> refuse "'%s' is no number" s
let prefixed prefix s =
  let n = String.length prefix in
  if String.length s >= n && String.sub s 0 n = prefix then String.sub s n (String.length s - n)
  else refuse "'%s' must begin with '%s'" s prefix
let node_id s = number (prefixed "%" s)
let words s = String.split_on_char ' ' s

(* The last place where `what` stands in a text. *)
let rec last_place s what i =
  if i < 0 then refuse "'%s' must have '%s'" s what
  else if String.sub s i (String.length what) = what then i
  else last_place s what (i - 1)
let cut s what =
  let i = last_place s what (String.length s - String.length what) in
  String.sub s 0 i, String.sub s (i + String.length what) (String.length s - i - String.length what)

let read_node index line =
  let known, typ = cut line " : " in
  let typ = match words typ with
    | [ rows; cols ] | [ rows; cols; "@layer"; _ ] -> rows ^ " " ^ cols
    | _ -> refuse "line '%s' has no type" line in
  let cols = number (fst (cut (snd (cut typ ", ")) "]")) in
  let text = prefixed (Printf.sprintf "%%%d = " index) known in
  match String.index_opt text '(' with
  | Some i when String.index_opt text ' ' = None || String.index text ' ' > i ->
    let inside, rest = match String.index_opt text ')' with
      | Some j -> String.sub text (i + 1) (j - i - 1), String.sub text (j + 1) (String.length text - j - 1)
      | None -> refuse "line '%s' cannot be read" line in
    let input s = let k = node_id s in if k < index then k else refuse "%%%d reads a node that comes after it" index in
    let inputs = List.map (fun s -> input (String.trim s)) (String.split_on_char ',' inside) in
    let attribute s = match String.split_on_char '=' s with
      | [ name; value ] -> name, value
      | _ -> refuse "line '%s' cannot be read at '%s'" line s in
    let attributes = match words rest with "" :: l -> List.map attribute l | _ -> refuse "line '%s' cannot be read" line in
    { op = String.sub text 0 i; leaf = ""; inputs = Array.of_list inputs; attributes; typ; cols }
  | _ -> { op = List.hd (words text); leaf = text ^ " : " ^ typ; inputs = [||]; attributes = []; typ; cols }

(* Nodes, and which of them gives the tokens. *)
let read_graph = function
  | heading :: lines ->
    let tokens = node_id (snd (cut heading " tokens=")) in
    let nodes = Array.of_list (List.mapi read_node lines) in
    if tokens >= Array.length nodes then refuse "there is no %%%d" tokens;
    nodes, tokens
  | [] -> refuse "there is no graph"

(* ---- The log *)
type firing = { rule : string; matched : int list; right : int list }

let read_firing nodes line =
  let rule, rest = match String.index_opt line ':' with
    | Some i -> String.sub line 0 i, words (String.sub line (i + 1) (String.length line - i - 1))
    | None -> refuse "firing '%s' cannot be read" line in
  let id s = let k = node_id s in if k < Array.length nodes then k else refuse "there is no %%%d" k in
  let rec split left = function
    | "=" :: r -> { rule; matched = List.rev left; right = List.map id r }
    | s :: r -> split (id s :: left) r
    | [] -> refuse "firing '%s' cannot be read" line in
  match rest with "" :: r -> split [] r | _ -> refuse "firing '%s' cannot be read" line

let lines_of text = match List.rev (String.split_on_char '\n' text) with
  | "" :: l -> List.rev l
  | _ -> refuse "it does not end with a line"

let field name s = number (prefixed (name ^ "=") s)
(* A line: a word, and so many others. *)
let heading line first count = match words line with
  | word :: fields when word = first && List.length fields = count -> fields
  | _ -> refuse "line '%s' cannot be read" line
let rec take n l = match n, l with
  | 0, _ -> [], l
  | _, x :: r -> let a, b = take (n - 1) r in x :: a, b
  | _, [] -> refuse "it ends too early"

let fields_of_part = 13

let read_log text =
  match lines_of text with
  | "rewrite log 1" :: disabled :: values :: parts :: rest ->
    (match words disabled with
     | "disabled" :: names -> List.iter (fun n -> if not (List.mem n Rules.names) then refuse "there is no rule '%s'" n) names
     | _ -> refuse "line '%s' cannot be read" disabled);
    List.iter2 (fun name s -> ignore (field name s)) [ "common"; "dead" ] (heading values "values" 2);
    let n_parts = field "count" (List.hd (heading parts "parts" 1)) in
    let part_lines, rest = take n_parts rest in
    List.iter (fun line -> ignore (heading line "part" fields_of_part)) part_lines;
    let terms_line, rest = take 1 rest in
    let n_terms, n_before = match heading (List.hd terms_line) "terms" 2 with
      | [ count; prior ] -> field "count" count, field "before" prior
      | _ -> assert false in
    let terms, rest = take (n_terms + 1) rest in
    let nodes, tokens = read_graph terms in
    if tokens >= n_before || n_before > n_terms then refuse "the graph as it was has no tokens";
    let firings_line, firings = take 1 rest in
    let n = field "count" (List.hd (heading (List.hd firings_line) "firings" 1)) in
    if List.length firings <> n then refuse "%d firings are announced and %d are there" n (List.length firings);
    nodes, tokens, List.map (read_firing nodes) firings
  | _ -> refuse "its heading cannot be read"

(* ---- Rules: name[attribute=value ...](input, ...), a word, or a number *)
type term = { name : string; given : (string * term) list; arguments : term list option }

let read_terms text =
  let n = String.length text in
  let is_word c = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c = '_' in
  let rec spaces i = if i < n && (text.[i] = ' ' || text.[i] = ',') then spaces (i + 1) else i in
  let rec term i =
    let rec stop j = if j < n && is_word text.[j] then stop (j + 1) else j in
    let j = stop i in
    if j = i then refuse "the rule '%s' cannot be read" text;
    let given, j = if j < n && text.[j] = '[' then attributes (j + 1) [] else [], j in
    let arguments, j = if j < n && text.[j] = '(' then (let l, k = inputs (j + 1) [] in Some l, k) else None, j in
    { name = String.sub text i (stop i - i); given; arguments }, j
  and attributes i found =
    let i = spaces i in
    if text.[i] = ']' then List.rev found, i + 1
    else
      let j = String.index_from text i '=' in
      let value, k = term (j + 1) in
      attributes k ((String.sub text i (j - i), value) :: found)
  and inputs i found =
    let i = spaces i in
    if text.[i] = ')' then List.rev found, i + 1 else let x, k = term i in inputs k (x :: found) in
  let rec all i found = let i = spaces i in if i >= n then List.rev found else let x, k = term i in all k (x :: found) in
  all 0 []

type rule = { left : term; result : term; conditions : term list }

let rules : (string, rule) Hashtbl.t Lazy.t = lazy (
  let table = Hashtbl.create 64 in
  List.iter (fun (name, left, result, conditions) ->
      Hashtbl.add table name
        { left = List.hd (read_terms left); result = List.hd (read_terms result); conditions = read_terms conditions })
    Rules.proved;
  table)

(* ---- Equalities *)
type table = { nodes : node array; leader : int array; mutable closed : bool }

let rec find t i = if t.leader.(i) = i then i else find t t.leader.(i)
let rec close t =
  let seen = Hashtbl.create (Array.length t.nodes) and changed = ref false in
  Array.iteri (fun i node ->
      let key = node.op, node.leaf, node.attributes, Array.map (find t) node.inputs in
      match Hashtbl.find_opt seen key with
      | None -> Hashtbl.add seen key i
      | Some j -> if find t i <> find t j then begin t.leader.(find t i) <- find t j; changed := true end) t.nodes;
  if !changed then close t else t.closed <- true
let equal t a b =
  find t a = find t b || begin
    if not t.closed then close t;
    find t a = find t b
  end

(* ---- One firing *)
let f32 s = match float_of_string_opt s with Some x -> Int32.float_of_bits (Int32.bits_of_float x) | None -> refuse "'%s' is no number" s

let check_firing t firing =
  let rule = match Hashtbl.find_opt (Lazy.force rules) firing.rule with
    | Some rule -> rule
    | None -> refuse "there is no proved rule '%s'" firing.rule in
  let fail () = refuse "a firing is no instance of the rule %s" firing.rule in
  let values = Hashtbl.create 8 and numbers = Hashtbl.create 8 and chosen = Hashtbl.create 4 in
  let rest = ref firing.matched in
  let next () = match !rest with k :: r -> rest := r; k | [] -> fail () in
  let bind table same name x = match Hashtbl.find_opt table name with
    | None -> Hashtbl.add table name x
    | Some y -> if not (same x y) then fail () in
  let is_number s = is_digit s.[0] in
  (* `at`: what stands there; None at the root. *)
  let rec matches term at =
    match term.arguments, at with
    | None, Some at -> bind values (equal t) term.name at
    | None, None -> fail ()
    | Some inputs, _ ->
      let k = next () in
      let node = t.nodes.(k) in
      if node.op <> term.name || not (match at with Some at -> equal t k at | None -> true) then fail ();
      if List.map fst node.attributes <> List.map fst term.given || Array.length node.inputs <> List.length inputs then fail ();
      List.iter2 (fun (_, value) (_, wanted) ->
          if is_number wanted.name then (if value <> wanted.name then fail ()) else bind numbers ( = ) wanted.name value)
        node.attributes term.given;
      List.iteri (fun i input -> matches input (Some node.inputs.(i))) inputs in
  matches rule.left None;
  if !rest <> [] then fail ();
  let value term = match Hashtbl.find_opt values term.name with Some k -> k | None -> fail () in
  let text term = match Hashtbl.find_opt numbers term.name with Some s -> s | None -> fail () in
  let cols term = t.nodes.(value term).cols in
  List.iter (fun c ->
      let holds = match c.name, c.arguments with
        | "whole_row", Some [ n; x ] -> number (text n) = cols x
        | "zero", Some [ a ] -> f32 (text a) = 0.
        | "one", Some [ a ] -> f32 (text a) = 1.
        | "positive", Some [ a ] -> f32 (text a) > 0.
        | ("nonzero" | "stored_f32" | "power_of_two"), _ -> true  (* of rounding; the theorem holds without *)
        | _ -> refuse "the condition '%s' of %s is not known" c.name firing.rule in
      if not holds then fail ()) rule.conditions;
  (* Whether an attribute of the right side is what the rule says: of a chosen number, within what its theorem allows. *)
  let is_given found wanted = match wanted.name, wanted.arguments with
    | name, None -> found = (if is_number name then name else text wanted)
    | "cols", Some [ x ] -> found = string_of_int (cols x)
    | "product", Some [ a; b ] -> f32 found = f32 (text a) *. f32 (text b)
    | "over_square", Some [ a; b ] -> f32 (text b) *. f32 (text b) *. f32 found = f32 (text a)
    | "heads_of_kv_head", Some [ q; s ] -> found = string_of_int (cols q / cols s)
    | (("half" | "half_of_heads" | "middle") as name), Some arguments ->
      let low, high = match name, arguments with
        | "half", [ x ] -> 0, cols x
        | "half_of_heads", [ _; x ] -> 0, cols x
        | _, [ b; e ] -> number (text b), number (text e)
        | _ -> fail () in
      bind chosen ( = ) wanted found;
      low <= number found && number found <= high
    | _ -> refuse "the function '%s' of %s is not known" wanted.name firing.rule in
  rest := firing.right;
  let rec built term at =
    match term.arguments with
    | None -> if not (equal t (value term) at) then fail ()
    | Some inputs ->
      let k = next () in
      if not (equal t k at) then fail ();
      if term.name = "plus" then plus k inputs else begin
        let node = t.nodes.(k) in
        if node.op <> term.name || List.map fst node.attributes <> List.map fst term.given then fail ();
        if Array.length node.inputs <> List.length inputs then fail ();
        List.iter2 (fun (_, found) (_, wanted) -> if not (is_given found wanted) then fail ()) node.attributes term.given;
        List.iteri (fun i input -> built input node.inputs.(i)) inputs
      end
  (* A stored weight with a number added: the same leaf but for " plus=". *)
  and plus k = function
    | [ weight; added ] ->
      let name, typ = cut t.nodes.(k).leaf " : " in
      let name, found = cut name " plus=" in
      let original = name ^ " : " ^ typ and at = value weight in
      let stored i node = node.leaf = original && equal t i at in
      if f32 found <> f32 (text added) || not (Array.exists Fun.id (Array.mapi stored t.nodes)) then fail ()
    | _ -> fail () in
  let root, other = match firing.matched, firing.right with a :: _, b :: _ -> a, b | _ -> fail () in
  (match rule.result.arguments with
   | None -> ignore (next ()); if not (equal t (value rule.result) other) then fail ()
   | Some _ -> built rule.result other);
  if !rest <> [] || t.nodes.(root).typ <> t.nodes.(other).typ then fail ();
  t.leader.(find t root) <- find t other;
  t.closed <- false

(* The number of firings; Refused says what is wrong. A bundle that was not rewritten has none. *)
let check ~log ~graph =
  if log = "" || log = "off\n" then 0
  else begin
    let terms, tokens, firings = read_log log in
    let product, product_tokens = read_graph (lines_of graph) in
    let n = Array.length terms in
    let shifted = Array.map (fun x -> { x with inputs = Array.map (fun i -> i + n) x.inputs }) product in
    let nodes = Array.append terms shifted in
    let t = { nodes; leader = Array.init (Array.length nodes) Fun.id; closed = false } in
    List.iter (check_firing t) firings;
    if not (equal t tokens (product_tokens + n)) then
      refuse "the firings do not show that the compiled graph computes what the graph as it was did";
    List.length firings
  end
