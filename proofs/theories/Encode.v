(* What an encoder has to write, record by record as src/abi declares them, and that the decoder reads just that back. Fields that the
   decoder does not look at (flags, stream lists, names, digests) may be anything. *)
From Coq Require Import NArith List Arith Bool Lia.
From Plow Require Import Memory Program Verify Decode.
Import ListNotations.
Local Opaque absent n256.  (* numbers in unary *)

(* A record: values, and how many bytes each takes, one after another, little-endian. *)
Definition record := list (nat * nat).
Fixpoint le (n v : nat) : list nat := match n with 0 => [] | S m => v mod n256 :: le m (v / n256) end.
Definition bytes_of (r : record) : list nat := flat_map (fun f => le (fst f) (snd f)) r.
Definition fits (r : record) : Prop := Forall (fun f => snd f < n256 ^ fst f) r.
Definition width (r : record) : nat := fold_right (fun f n => fst f + n) 0 r.
(* A number of 8 bytes is two of 4. *)
Definition low (n : N) : nat := N.to_nat (n mod 4294967296).
Definition high (n : N) : nat := N.to_nat (n / 4294967296).
Definition wide (n : N) : record := [(4, low n); (4, high n)].

Definition wait_record (w : wait_entry) : record :=
  [(4, w_counter w); (4, w_per_tile w); (4, w_constant w); (1, w_rows w); (1, if w_band w then 1 else 0); (2, 0)].
Definition signal_record (scope : nat) (s : signal_entry) : record :=
  [(4, s_counter s); (1, if s_band s then 1 else 0); (1, scope); (2, 0)].
Definition packet_record (flags variant first_wait first_signal : nat) (k : packet) : record :=
  [(2, p_op k); (2, flags); (1, p_kind k); (1, length (p_waits k)); (1, length (p_signals k)); (1, variant);
   (4, p_col_first k); (2, p_col_count k); (2, p_col_stride k); (2, p_row_first k); (2, p_row_stride k)] ++
  map (fun j => (2, nth j (p_operands k) absent)) (seq 0 6) ++ [(4, first_wait); (4, first_signal)] ++
  map (fun j => (4, nth j (p_attributes k) 0)) (seq 0 5) ++ [(4, p_tile_cols k)].
Definition space_number (s : space) : nat := match s with Tape => 1 | Arena => 2 | Cache => 3 | Column => 4 end.
Definition tensor_record (source node dtype : nat) (t : tensor) : record :=
  wide (t_offset t) ++ wide (t_bytes t) ++
  [(4, N.to_nat (t_rows t)); (4, t_cols t); (4, N.to_nat (t_stride t)); (4, source); (4, t_group t); (4, node);
   (1, dtype); (1, t_kind t); (1, space_number (t_space t)); (1, t_layout t); (4, 0)].
Definition worker_record (first count first_stream n_stream : nat) : record :=
  [(4, first); (4, count); (4, first_stream); (4, n_stream)].
Definition group_record (window layers : nat) (g : kv_group) : record :=
  [(4, window); (4, N.to_nat (k_block_tokens g))] ++ wide (k_block_bytes g) ++ [(4, layers); (4, 0)].
(* Where a program's tables lie among those of all programs. *)
Record extents := { x_packet : nat; x_packets : nat; x_stream : nat; x_streams : nat; x_tensor : nat; x_cut : cut }.
Definition program_record (predicted : N) (x : extents) (p : program) : record :=
  [(4, max_rows p); (4, max_samples p); (4, token_row_tile p); (4, sample_row_tile p); (4, x_packet x); (4, x_packets x);
   (4, c_first_wait (x_cut x)); (4, c_n_waits (x_cut x)); (4, c_first_signal (x_cut x)); (4, c_n_signals (x_cut x));
   (4, x_stream x); (4, x_streams x); (4, x_tensor x); (4, c_n_tensors (x_cut x)); (4, n_counters p); (4, 0)] ++
  wide (arena_bytes p) ++ wide predicted.
Definition section_record (kind count : nat) (offset bytes : N) : record := [(4, kind); (4, count)] ++ wide offset ++ wide bytes.
(* Its first 40 bytes; digests and the model's geometry follow, and the sections. *)
Definition header_record (mark : N) (version isa workers sections : nat) (file tape : N) : record :=
  wide mark ++ [(4, version); (4, isa); (4, workers); (4, sections)] ++ wide file ++ wide tape.

Definition at_ (file : list nat) (i : nat) : nat := nth i file 0.
Definition lies (file : list nat) (base : nat) (r : record) : Prop :=
  fits r /\ exists pre post, length pre = base /\ file = pre ++ bytes_of r ++ post.

(* ---- Bytes *)
Lemma n256_positive : 0 < n256. Proof. Transparent n256. cbn. Opaque n256. lia. Qed.

Lemma le_length : forall n v, length (le n v) = n.
Proof. induction n as [|n IH]; intros; cbn; auto. Qed.
Lemma bytes_length : forall r, length (bytes_of r) = width r.
Proof.
  induction r as [|f r IH]; [reflexivity|]. unfold bytes_of in *. cbn [flat_map width fold_right]. now rewrite app_length, le_length, IH.
Qed.

Lemma little_le : forall n v pre post, v < n256 ^ n -> little (at_ (pre ++ le n v ++ post)) n (length pre) = v.
Proof.
  pose proof n256_positive as P. induction n as [|n IH]; intros v pre post L.
  - cbn in *. lia.
  - cbn [little le]. unfold at_ at 1. rewrite app_nth2, Nat.sub_diag by lia. cbn [app nth].
    replace (pre ++ v mod n256 :: le n (v / n256) ++ post) with ((pre ++ [v mod n256]) ++ le n (v / n256) ++ post)
      by (rewrite <- app_assoc; reflexivity).
    replace (S (length pre)) with (length (pre ++ [v mod n256])) by (rewrite app_length; cbn; lia).
    rewrite IH.
    + pose proof (Nat.div_mod v n256). lia.
    + apply Nat.div_lt_upper_bound; [lia|]. now rewrite <- Nat.pow_succ_r'.
Qed.

Section Written.
Variable file : list nat.
Let byte := at_ file.

Definition wait_written (i : nat) (w : wait_entry) : Prop :=
  lies file (element byte kWaits wait_size i) (wait_record w) /\ w_rows w <= 2.
Definition signal_written (i : nat) (s : signal_entry) : Prop :=
  exists scope, lies file (element byte kSignals signal_size i) (signal_record scope s).
Definition packet_written (c : cut) (i : nat) (k : packet) : Prop :=
  exists flags variant fw fs, lies file (element byte kPackets packet_size i) (packet_record flags variant fw fs k) /\
    p_kind k <= 2 /\ length (p_operands k) <= 6 /\ Forall (fun o => o < c_n_tensors c /\ o <> absent) (p_operands k) /\
    length (p_attributes k) = 5 /\ fw + length (p_waits k) <= c_n_waits c /\ fs + length (p_signals k) <= c_n_signals c /\
    (forall j w, nth_error (p_waits k) j = Some w -> wait_written (c_first_wait c + fw + j) w) /\
    (forall j s, nth_error (p_signals k) j = Some s -> signal_written (c_first_signal c + fs + j) s).
Definition tensor_written (i : nat) (t : tensor) : Prop :=
  exists source node dtype, lies file (element byte kTensors tensor_size i) (tensor_record source node dtype t) /\
    decode_element dtype = Some (t_element t) /\ t_kind t <= 2 /\ 1 <= t_layout t <= 6.
Definition group_written (i : nat) (g : kv_group) : Prop :=
  exists window layers, lies file (element byte kGroups group_size i) (group_record window layers g).
(* Workers' lists follow each other. *)
Fixpoint queues_written (c : cut) (first worker next : nat) (qs : list (list packet)) : Prop :=
  match qs with
  | [] => True
  | q :: r =>
      (exists s n, lies file (element byte kWorkers worker_size worker) (worker_record next (length q) s n)) /\
      (forall j k, nth_error q j = Some k -> packet_written c (first + next + j) k) /\
      queues_written c first (S worker) (next + length q) r
  end.
Definition program_written (workers i : nat) (p : program) : Prop :=
  exists predicted x, lies file (element byte kPrograms program_size i) (program_record predicted x p) /\
    c_first_wait (x_cut x) + c_n_waits (x_cut x) <= section_elements byte kWaits /\
    c_first_signal (x_cut x) + c_n_signals (x_cut x) <= section_elements byte kSignals /\
    x_tensor x + c_n_tensors (x_cut x) <= section_elements byte kTensors /\
    x_packet x + x_packets x <= section_elements byte kPackets /\
    length (queues p) = workers /\ x_packets x = length (concat (queues p)) /\
    queues_written (x_cut x) (x_packet x) (i * workers) 0 (queues p) /\
    c_n_tensors (x_cut x) = length (tensor_table p) /\
    (forall j t, nth_error (tensor_table p) j = Some t -> tensor_written (x_tensor x + j) t).
Definition section_written (kind size count : nat) : Prop :=
  exists offset bytes, lies file (section_base kind) (section_record kind count offset bytes) /\
    (offset < 1099511627776)%N /\ N.to_nat offset + count * size <= length file.
Definition bundle_written (b : bundle) : Prop :=
  (exists mark isa total, lies file 0 (header_record mark abi_version isa (b_workers b) 13 total (b_tape_bytes b)) /\
    mark = magic /\ total = N.of_nat (length file)) /\
  header_size <= length file /\ 0 < b_workers b /\ b_programs b <> [] /\
  section_written kPrograms program_size (length (b_programs b)) /\
  section_written kWorkers worker_size (length (b_programs b) * b_workers b) /\
  (exists n, section_written kPackets packet_size n) /\ (exists n, section_written kWaits wait_size n) /\
  (exists n, section_written kSignals signal_size n) /\ (exists n, section_written kTensors tensor_size n) /\
  section_written kGroups group_size (length (b_groups b)) /\
  (forall i p, nth_error (b_programs b) i = Some p -> program_written (b_workers b) i p) /\
  (forall i g, nth_error (b_groups b) i = Some g -> group_written i g).

(* ---- Reading *)
(* The k-th value of a record that lies at `base`. *)
Lemma read_value : forall base r, lies file base r -> forall k n v, nth_error r k = Some (n, v) ->
  little byte n (base + width (firstn k r)) = v.
Proof.
  intros base r (F & pre & post & B & E) k n v K.
  assert (V : v < n256 ^ n).
  { unfold fits in F. rewrite Forall_forall in F. exact (F _ (nth_error_In _ _ K)). }
  destruct (nth_error_split _ _ K) as (a & c & -> & <-).
  rewrite firstn_app, firstn_all, Nat.sub_diag, app_nil_r. subst base byte. rewrite E.
  unfold bytes_of. rewrite flat_map_app. cbn [flat_map]. fold (bytes_of a). fold (bytes_of c).
  replace (pre ++ (bytes_of a ++ le (fst (n, v)) (snd (n, v)) ++ bytes_of c) ++ post)
    with ((pre ++ bytes_of a) ++ le n v ++ (bytes_of c ++ post)) by (cbn [fst snd]; now rewrite !app_assoc).
  rewrite <- (bytes_length a), <- app_length. now apply little_le.
Qed.

Lemma of_wide : forall n, (N.of_nat (low n) + 4294967296 * N.of_nat (high n))%N = n.
Proof.
  intro n. unfold low, high. rewrite !N2Nat.id. rewrite (N.div_mod n 4294967296) at 3 by discriminate.
  apply N.add_comm.
Qed.

Lemma read_wide : forall base r, lies file base r -> forall k n, nth_error r k = Some (4, low n) -> nth_error r (S k) = Some (4, high n) ->
  get_wide byte base (Field (width (firstn k r)) 8) = n.
Proof.
  intros base r L k n K1 K2. unfold get_wide. cbn [f_at].
  rewrite (read_value base r L k 4 _ K1).
  replace (base + width (firstn k r) + 4) with (base + width (firstn (S k) r)).
  - rewrite (read_value base r L (S k) 4 _ K2). apply of_wide.
  - assert (W : width (firstn (S k) r) = width (firstn k r) + 4).
    { clear -K1. revert r K1. induction k as [|k IH]; intros [|f r] K; try discriminate; cbn in K.
      - injection K as ->. reflexivity.
      - change (fst f + width (firstn (S k) r) = fst f + width (firstn k r) + 4). rewrite (IH r K). lia. }
    lia.
Qed.

(* ---- Tables *)
Lemma all_some_table : forall A (f : nat -> option A) l i, (forall j a, nth_error l j = Some a -> f (i + j) = Some a) ->
  all_some (table_from f i (length l)) = Some l.
Proof.
  intros A f. induction l as [|a l IH]; intros i H; [reflexivity|]. cbn [length table_from all_some].
  rewrite <- (Nat.add_0_r i) at 1. rewrite (H 0 a eq_refl). rewrite IH; [reflexivity|].
  intros j x J. rewrite <- (H (S j) x J). f_equal. lia.
Qed.

Lemma all_some_read : forall A (f : nat -> option A) l, (forall j a, nth_error l j = Some a -> f j = Some a) ->
  all_some (table f (length l)) = Some l.
Proof. intros A f l H. apply all_some_table. exact H. Qed.

Lemma operands_read : forall l n, Forall (fun o => o <> absent) l -> operands_of (l ++ repeat absent n) = Some l.
Proof.
  intros l n H. induction H as [|x l N H IH]; cbn [app].
  - destruct n as [|n]; [reflexivity|]. cbn [repeat operands_of]. rewrite Nat.eqb_refl.
    assert (F : forallb (fun y => y =? absent) (repeat absent n) = true) by (apply forallb_forall; intros y I; apply repeat_spec in I; subst; apply Nat.eqb_refl).
    now rewrite F.
  - cbn [operands_of]. rewrite (proj2 (Nat.eqb_neq x absent) N). now rewrite IH.
Qed.

Lemma padded : forall l, length l <= 6 -> map (fun j => nth j l absent) (seq 0 6) = l ++ repeat absent (6 - length l).
Proof. intros l L. do 7 (destruct l as [|? l]; [reflexivity|]). cbn in L. lia. Qed.

Ltac value L k := apply (read_value _ _ L k); reflexivity.

Theorem wait_read : forall i w, wait_written i w -> decode_wait byte i = Some w.
Proof.
  intros i w (L & R). unfold decode_wait. cbv zeta. set (base := element byte kWaits wait_size i) in *.
  assert (E1 : get byte base wait_counter = w_counter w) by value L 0.
  assert (E2 : get byte base wait_per_tile = w_per_tile w) by value L 1.
  assert (E3 : get byte base wait_constant = w_constant w) by value L 2.
  assert (E4 : get byte base wait_rows = w_rows w) by value L 3.
  assert (E5 : get byte base wait_band = if w_band w then 1 else 0) by value L 4.
  rewrite E1, E2, E3, E4, E5. rewrite (proj2 (Nat.leb_le _ _) R). destruct w as [c a b r []]; reflexivity.
Qed.

Theorem signal_read : forall i s, signal_written i s -> decode_signal byte i = Some s.
Proof.
  intros i s (scope & L). unfold decode_signal. cbv zeta. set (base := element byte kSignals signal_size i) in *.
  assert (E1 : get byte base signal_counter = s_counter s) by value L 0.
  assert (E2 : get byte base signal_band = if s_band s then 1 else 0) by value L 1.
  rewrite E1, E2. destruct s as [c []]; reflexivity.
Qed.

Theorem packet_read : forall c i k, packet_written c i k -> decode_packet byte c i = Some k.
Proof.
  intros c i k (flags & variant & fw & fs & L & Ki & Lo & Op & La & Nw & Ns & Ws & Ss).
  unfold decode_packet. cbv zeta. set (base := element byte kPackets packet_size i) in *.
  assert (E1 : get byte base packet_body = p_op k) by value L 0.
  assert (E2 : get byte base packet_row_kind = p_kind k) by value L 2.
  assert (E3 : get byte base packet_n_waits = length (p_waits k)) by value L 3.
  assert (E4 : get byte base packet_n_signals = length (p_signals k)) by value L 4.
  assert (E5 : get byte base packet_col_first = p_col_first k) by value L 6.
  assert (E6 : get byte base packet_col_count = p_col_count k) by value L 7.
  assert (E7 : get byte base packet_col_stride = p_col_stride k) by value L 8.
  assert (E8 : get byte base packet_row_first = p_row_first k) by value L 9.
  assert (E9 : get byte base packet_row_stride = p_row_stride k) by value L 10.
  assert (E10 : get byte base packet_first_wait = fw) by value L 17.
  assert (E11 : get byte base packet_first_signal = fs) by value L 18.
  assert (E12 : get byte base packet_tile_cols = p_tile_cols k) by value L 24.
  assert (O : table (fun j => little byte 2 (base + f_at packet_operands + 2 * j)) 6 = map (fun j => nth j (p_operands k) absent) (seq 0 6)).
  { unfold table. cbn [table_from map seq f_at packet_operands Nat.mul Nat.add]. rewrite <- !Nat.add_assoc.
    repeat (apply f_equal2; [|]); try reflexivity.
    - value L 11. - value L 12. - value L 13. - value L 14. - value L 15. - value L 16. }
  assert (A : table (fun j => little byte 4 (base + f_at packet_immediates + 4 * j)) 5 = map (fun j => nth j (p_attributes k) 0) (seq 0 5)).
  { unfold table. cbn [table_from map seq f_at packet_immediates Nat.mul Nat.add]. rewrite <- !Nat.add_assoc.
    repeat (apply f_equal2; [|]); try reflexivity.
    - value L 19. - value L 20. - value L 21. - value L 22. - value L 23. }
  assert (A' : map (fun j => nth j (p_attributes k) 0) (seq 0 5) = p_attributes k).
  { clear -La. destruct (p_attributes k) as [|a [|b [|d [|e [|f [|]]]]]]; try discriminate. reflexivity. }
  rewrite E1, E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, O, A, A', padded by exact Lo.
  rewrite operands_read by (eapply Forall_impl; [|exact Op]; cbn; tauto).
  rewrite (all_some_read _ (fun j => decode_wait byte (c_first_wait c + fw + j)) (p_waits k)) by (intros j w J; exact (wait_read _ _ (Ws j w J))).
  rewrite (all_some_read _ (fun j => decode_signal byte (c_first_signal c + fs + j)) (p_signals k)) by (intros j s J; exact (signal_read _ _ (Ss j s J))).
  rewrite (proj2 (Nat.leb_le _ _) Nw), (proj2 (Nat.leb_le _ _) Ns), (proj2 (Nat.leb_le _ _) Ki). cbn [andb need].
  assert (F : forallb (fun o => o <? c_n_tensors c) (p_operands k) = true).
  { apply forallb_forall. intros o I. rewrite Forall_forall in Op. apply Nat.ltb_lt. exact (proj1 (Op o I)). }
  rewrite F. destruct k; reflexivity.
Qed.

Theorem tensor_read : forall i t, tensor_written i t -> decode_tensor byte i = Some t.
Proof.
  intros i t (source & node & dtype & L & D & Ki & (L1 & L2)). unfold decode_tensor. cbv zeta.
  set (base := element byte kTensors tensor_size i) in *.
  assert (E1 : get_wide byte base tensor_offset = t_offset t) by (apply (read_wide _ _ L 0); reflexivity).
  assert (E2 : get_wide byte base tensor_bytes = t_bytes t) by (apply (read_wide _ _ L 2); reflexivity).
  assert (E3 : get byte base tensor_rows = N.to_nat (t_rows t)) by value L 4.
  assert (E4 : get byte base tensor_cols = t_cols t) by value L 5.
  assert (E5 : get byte base tensor_row_stride = N.to_nat (t_stride t)) by value L 6.
  assert (E6 : get byte base tensor_kv_group = t_group t) by value L 8.
  assert (E7 : get byte base tensor_dtype = dtype) by value L 10.
  assert (E8 : get byte base tensor_row_kind = t_kind t) by value L 11.
  assert (E9 : get byte base tensor_space = space_number (t_space t)) by value L 12.
  assert (E10 : get byte base tensor_layout = t_layout t) by value L 13.
  rewrite E1, E2, E3, E4, E5, E6, E7, E8, E9, E10, D, !N2Nat.id.
  assert (S : decode_space (space_number (t_space t)) = Some (t_space t)) by (destruct (t_space t); reflexivity).
  rewrite S, (proj2 (Nat.leb_le _ _) Ki), (proj2 (Nat.leb_le _ _) L1), (proj2 (Nat.leb_le _ _) L2). destruct t; reflexivity.
Qed.

Theorem group_read : forall i g, group_written i g -> decode_group byte i = g.
Proof.
  intros i g (window & layers & L). unfold decode_group. cbv zeta. set (base := element byte kGroups group_size i) in *.
  assert (E1 : get byte base group_block_tokens = N.to_nat (k_block_tokens g)) by value L 1.
  assert (E2 : get_wide byte base group_block_bytes = k_block_bytes g) by (apply (read_wide _ _ L 2); reflexivity).
  rewrite E1, E2, N2Nat.id. destruct g; reflexivity.
Qed.

Lemma queues_read : forall c first qs worker next, queues_written c first worker next qs ->
  decode_queues byte c first worker (length qs) next = Some (next + length (concat qs), qs).
Proof.
  intros c first. induction qs as [|q qs IH]; intros worker next H; cbn [length concat decode_queues].
  - now rewrite Nat.add_0_r.
  - destruct H as ((s & n & L) & P & H). cbv zeta. set (base := element byte kWorkers worker_size worker) in *.
    assert (E1 : get byte base worker_first_packet = next) by value L 0.
    assert (E2 : get byte base worker_n_packets = length q) by value L 1.
    rewrite E1, E2, Nat.eqb_refl. cbn [need].
    rewrite (all_some_read _ (fun j => decode_packet byte c (first + next + j)) q) by (intros j k J; exact (packet_read _ _ _ (P j k J))).
    rewrite (IH _ _ H). now rewrite app_length, Nat.add_assoc.
Qed.

Theorem program_read : forall workers i p, program_written workers i p -> decode_program byte workers i = Some p.
Proof.
  intros workers i p (predicted & x & L & R1 & R2 & R3 & R4 & W & Np & Q & Nt & T). unfold decode_program. cbv zeta.
  set (base := element byte kPrograms program_size i) in *.
  assert (E1 : get byte base program_max_rows = max_rows p) by value L 0.
  assert (E2 : get byte base program_max_samples = max_samples p) by value L 1.
  assert (E3 : get byte base program_token_tile = token_row_tile p) by value L 2.
  assert (E4 : get byte base program_sample_tile = sample_row_tile p) by value L 3.
  assert (E5 : get byte base program_first_packet = x_packet x) by value L 4.
  assert (E6 : get byte base program_n_packets = x_packets x) by value L 5.
  assert (E7 : get byte base program_first_wait = c_first_wait (x_cut x)) by value L 6.
  assert (E8 : get byte base program_n_waits = c_n_waits (x_cut x)) by value L 7.
  assert (E9 : get byte base program_first_signal = c_first_signal (x_cut x)) by value L 8.
  assert (E10 : get byte base program_n_signals = c_n_signals (x_cut x)) by value L 9.
  assert (E11 : get byte base program_first_tensor = x_tensor x) by value L 12.
  assert (E12 : get byte base program_n_tensors = c_n_tensors (x_cut x)) by value L 13.
  assert (E13 : get byte base program_n_counters = n_counters p) by value L 14.
  assert (E14 : get_wide byte base program_arena_bytes = arena_bytes p) by (apply (read_wide _ _ L 16); reflexivity).
  rewrite E1, E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13, E14. cbn [c_first_wait c_n_waits c_first_signal c_n_signals c_n_tensors].
  rewrite (proj2 (Nat.leb_le _ _) R1), (proj2 (Nat.leb_le _ _) R2), (proj2 (Nat.leb_le _ _) R3), (proj2 (Nat.leb_le _ _) R4).
  cbn [andb need]. rewrite Nt.
  replace {| c_first_wait := c_first_wait (x_cut x); c_n_waits := c_n_waits (x_cut x); c_first_signal := c_first_signal (x_cut x);
             c_n_signals := c_n_signals (x_cut x); c_n_tensors := length (tensor_table p) |} with (x_cut x)
    by (rewrite <- Nt; now destruct (x_cut x)).
  rewrite <- W at 2. rewrite (queues_read _ _ _ _ _ Q). cbn [Nat.add].
  rewrite (all_some_read _ (fun j => decode_tensor byte (x_tensor x + j)) (tensor_table p)) by (intros j t J; exact (tensor_read _ _ (T j t J))).
  rewrite Np, Nat.eqb_refl. cbn [need]. destruct p; reflexivity.
Qed.

Lemma section_read : forall kind size count, section_written kind size count ->
  section_ok byte (length file) kind size = true /\ section_elements byte kind = count.
Proof.
  intros kind size count (offset & bytes & L & S & B). unfold section_ok, section_elements, section_start.
  assert (E1 : get byte (section_base kind) section_kind = kind) by value L 0.
  assert (E2 : get byte (section_base kind) section_count = count) by value L 1.
  assert (E3 : get_wide byte (section_base kind) section_offset = offset) by (apply (read_wide _ _ L 2); reflexivity).
  rewrite E1, E2, E3. split; [|reflexivity]. unfold small. rewrite Nat.eqb_refl, (proj2 (N.ltb_lt _ _) S), (proj2 (Nat.leb_le _ _) B). reflexivity.
Qed.

(* THEOREM. A file in which a bundle was written is decoded to that bundle. *)
Theorem decoder_reads_what_was_written : forall b, bundle_written b -> decode byte (length file) = Some b.
Proof.
  intros b ((mark & isa & total & L & M & T) & H & W & P & S1 & S2 & (n3 & S3) & (n4 & S4) & (n5 & S5) & (n6 & S6) & S7 & Ps & Gs).
  destruct (section_read _ _ _ S1) as [K1 C1], (section_read _ _ _ S2) as [K2 C2], (section_read _ _ _ S3) as [K3 _],
    (section_read _ _ _ S4) as [K4 _], (section_read _ _ _ S5) as [K5 _], (section_read _ _ _ S6) as [K6 _], (section_read _ _ _ S7) as [K7 C7].
  assert (E1 : get_wide byte 0 header_magic = mark) by (apply (read_wide _ _ L 0); reflexivity).
  assert (E2 : get byte 0 header_abi_version = abi_version) by value L 2.
  assert (E3 : get byte 0 header_workers = b_workers b) by value L 4.
  assert (E4 : get byte 0 header_n_sections = 13) by value L 5.
  assert (E5 : get_wide byte 0 header_file_bytes = total) by (apply (read_wide _ _ L 6); reflexivity).
  assert (E6 : get_wide byte 0 header_tape_bytes = b_tape_bytes b) by (apply (read_wide _ _ L 8); reflexivity).
  unfold decode. cbv zeta. rewrite E1, E2, E3, E4, E5, E6, K1, K2, K3, K4, K5, K6, K7, C1, C2, C7, T, !Nat.eqb_refl, N.eqb_refl.
  rewrite (proj2 (N.eqb_eq mark magic) M), (proj2 (Nat.leb_le _ _) H), (proj2 (Nat.ltb_lt _ _) W).
  assert (N : 0 <? length (b_programs b) = true) by (apply Nat.ltb_lt; destruct (b_programs b); [congruence|cbn; lia]).
  rewrite N. cbn [andb need].
  rewrite (all_some_read _ (decode_program byte (b_workers b)) (b_programs b)) by (intros j p J; exact (program_read _ _ _ (Ps j p J))).
  assert (G : table (decode_group byte) (length (b_groups b)) = b_groups b).
  { assert (G' : forall l i, (forall j g, nth_error l j = Some g -> decode_group byte (i + j) = g) -> table_from (decode_group byte) i (length l) = l).
    { induction l as [|g l IH]; intros i Hg; [reflexivity|]. cbn [length table_from].
      rewrite <- (Nat.add_0_r i) at 1. rewrite (Hg 0 g eq_refl). f_equal. apply IH. intros j x J. rewrite <- (Hg (S j) x J). f_equal. lia. }
    apply G'. intros j g J. exact (group_read _ _ (Gs j g J)). }
  rewrite G. destruct b; reflexivity.
Qed.
End Written.
