;; Gradient noise over the plane: every point of the integer lattice gets a direction from a hash of its
;; coordinates and the seed, and a position blends what the four corners of its cell say about it.
;; The blend is a polynomial of degree five, so that the first two derivatives are smooth across cells.
(module
  ;; The eight directions, as pairs of f64: the axes, then the diagonals scaled to length one.
  (memory 1 1)
  (data (i32.const 0)
    "\00\00\00\00\00\00\f0\3f" "\00\00\00\00\00\00\00\00" ;; ( 1,  0)
    "\00\00\00\00\00\00\f0\bf" "\00\00\00\00\00\00\00\00" ;; (-1,  0)
    "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\f0\3f" ;; ( 0,  1)
    "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\f0\bf" ;; ( 0, -1)
    "\cd\3b\7f\66\9e\a0\e6\3f" "\cd\3b\7f\66\9e\a0\e6\3f" ;; ( √½,  √½)
    "\cd\3b\7f\66\9e\a0\e6\bf" "\cd\3b\7f\66\9e\a0\e6\3f" ;; (-√½,  √½)
    "\cd\3b\7f\66\9e\a0\e6\3f" "\cd\3b\7f\66\9e\a0\e6\bf" ;; ( √½, -√½)
    "\cd\3b\7f\66\9e\a0\e6\bf" "\cd\3b\7f\66\9e\a0\e6\bf" ;; (-√½, -√½)
  )

  ;; Mixes two lattice coordinates and a seed into 32 well-spread bits.
  (func $hash (param $x i32) (param $y i32) (param $seed i32) (result i32)
    (local $bits i32)
    (local.set $bits
      (i32.xor
        (i32.xor
          (i32.mul (local.get $x) (i32.const 0x9e3779b1))
          (i32.mul (local.get $y) (i32.const 0x85ebca77)))
        (i32.mul (local.get $seed) (i32.const 0xc2b2ae3d))))
    (local.set $bits
      (i32.mul
        (i32.xor (local.get $bits) (i32.shr_u (local.get $bits) (i32.const 15)))
        (i32.const 0x2c1b3c6d)))
    (local.set $bits
      (i32.mul
        (i32.xor (local.get $bits) (i32.shr_u (local.get $bits) (i32.const 12)))
        (i32.const 0x297a2d39)))
    (i32.xor (local.get $bits) (i32.shr_u (local.get $bits) (i32.const 15))))

  ;; What one corner says: its direction, multiplied with the way from the corner to the position.
  (func $corner (param $x i32) (param $y i32) (param $dx f64) (param $dy f64) (param $seed i32) (result f64)
    (local $direction i32)
    (local.set $direction
      (i32.shl
        (i32.and (call $hash (local.get $x) (local.get $y) (local.get $seed)) (i32.const 7))
        (i32.const 4)))
    (f64.add
      (f64.mul (f64.load (local.get $direction)) (local.get $dx))
      (f64.mul (f64.load offset=8 (local.get $direction)) (local.get $dy))))

  ;; 6t⁵ - 15t⁴ + 10t³
  (func $blend (param $t f64) (result f64)
    (f64.mul
      (f64.mul (local.get $t) (f64.mul (local.get $t) (local.get $t)))
      (f64.add
        (f64.mul
          (local.get $t)
          (f64.sub (f64.mul (local.get $t) (f64.const 6)) (f64.const 15)))
        (f64.const 10))))

  (func $between (param $from f64) (param $to f64) (param $share f64) (result f64)
    (f64.add
      (local.get $from)
      (f64.mul (local.get $share) (f64.sub (local.get $to) (local.get $from)))))

  ;; noise(x, y, seed): between -1 and 1, and 0 on the lattice. Beyond 32 bits the lattice stays what it is at the edge.
  (func $noise (export "noise") (param $x f64) (param $y f64) (param $seed i32) (result f64)
    (local $column i32) (local $row i32) (local $dx f64) (local $dy f64) (local $across f64)
    (local.set $column (i32.trunc_sat_f64_s (f64.floor (local.get $x))))
    (local.set $row (i32.trunc_sat_f64_s (f64.floor (local.get $y))))
    (local.set $dx (f64.sub (local.get $x) (f64.floor (local.get $x))))
    (local.set $dy (f64.sub (local.get $y) (f64.floor (local.get $y))))
    (local.set $across (call $blend (local.get $dx)))
    (f64.mul
      (f64.const 1.4142135623730951)
      (call $between
        (call $between
          (call $corner
            (local.get $column) (local.get $row)
            (local.get $dx) (local.get $dy) (local.get $seed))
          (call $corner
            (i32.add (local.get $column) (i32.const 1)) (local.get $row)
            (f64.sub (local.get $dx) (f64.const 1)) (local.get $dy) (local.get $seed))
          (local.get $across))
        (call $between
          (call $corner
            (local.get $column) (i32.add (local.get $row) (i32.const 1))
            (local.get $dx) (f64.sub (local.get $dy) (f64.const 1)) (local.get $seed))
          (call $corner
            (i32.add (local.get $column) (i32.const 1)) (i32.add (local.get $row) (i32.const 1))
            (f64.sub (local.get $dx) (f64.const 1)) (f64.sub (local.get $dy) (f64.const 1))
            (local.get $seed))
          (local.get $across))
        (call $blend (local.get $dy)))))

  ;; fractal_noise(x, y, seed, octaves): octaves of half the size and half the weight each, one to sixteen,
  ;; divided by their whole weight.
  (func (export "fractal_noise") (param $x f64) (param $y f64) (param $seed i32) (param $octaves i32) (result f64)
    (local $sum f64) (local $weight f64) (local $total f64)
    (local.set $octaves
      (select
        (select (i32.const 16) (local.get $octaves) (i32.gt_s (local.get $octaves) (i32.const 16)))
        (i32.const 1)
        (i32.ge_s (local.get $octaves) (i32.const 1))))
    (local.set $weight (f64.const 1))
    (loop $octave
      (local.set $sum
        (f64.add
          (local.get $sum)
          (f64.mul
            (local.get $weight)
            (call $noise (local.get $x) (local.get $y) (local.get $seed)))))
      (local.set $total (f64.add (local.get $total) (local.get $weight)))
      (local.set $weight (f64.mul (local.get $weight) (f64.const 0.5)))
      (local.set $x (f64.mul (local.get $x) (f64.const 2)))
      (local.set $y (f64.mul (local.get $y) (f64.const 2)))
      (local.set $seed (i32.add (local.get $seed) (i32.const 1)))
      (local.set $octaves (i32.sub (local.get $octaves) (i32.const 1)))
      (br_if $octave (local.get $octaves)))
    (f64.div (local.get $sum) (local.get $total))))
