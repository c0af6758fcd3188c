package schema

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// appendDouble appends a float64 as Jackson does: Java's Double.toString, in quotes if it is not finite.
func appendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	if math.Signbit(f) {
		dst = append(dst, '-')
	}
	if f == 0 {
		return append(dst, "0.0"...)
	}
	var buf [24]byte
	digits, point := javaDigits(buf[:0], math.Abs(f))
	switch {
	case point > 0 && point < 8:
		for len(digits) <= point {
			digits = append(digits, '0')
		}
		dst = append(append(dst, digits[:point]...), '.')
		return append(dst, digits[point:]...)
	case point <= 0 && point > -3:
		dst = append(dst, "0."...)
		return append(append(dst, "00"[:-point]...), digits...)
	}
	dst = append(dst, digits[0], '.')
	if len(digits) == 1 {
		digits = append(digits, '0')
	}
	dst = append(append(dst, digits[1:]...), 'E')
	return strconv.AppendInt(dst, int64(point)-1, 10)
}

// javaDigits appends the decimal digits of a positive number, and tells where the point stands in them. It follows the
// algorithm that Java had before version 19 (FloatingDecimal), whose results are at times a digit longer than needed.
func javaDigits(digits []byte, f float64) ([]byte, int) {
	b := math.Float64bits(f)
	fraction, exponent, significant := b&(1<<52-1), int(b>>52), 53
	if exponent == 0 {
		significant = bits.Len64(fraction)
		fraction <<= 53 - significant
		exponent = significant - 52
	} else {
		fraction |= 1 << 52
	}
	exponent -= 1023
	zeros := bits.TrailingZeros64(fraction)
	fractionBits := 53 - zeros
	tiny := max(0, fractionBits-exponent-1)
	if exponent <= 62 && tiny == 0 {
		return longDigits(digits, fraction, exponent, significant)
	}
	d := digitRun{exponent: exponent, significant: significant, fractionBits: fractionBits, tiny: tiny}
	d.estimate(fraction)
	d.scale(fraction >> zeros)
	return d.run(digits)
}

// longDigits appends an integer below 2^63; digits beyond the precision are rounded away.
func longDigits(digits []byte, fraction uint64, exponent, significant int) ([]byte, int) {
	dropped := 0
	if p := exponent - significant - 1; exponent > significant && p > 1 {
		dropped = int(float64(p) * math.Log10(2))
	}
	n := fraction
	if exponent >= 52 {
		n <<= exponent - 52
	} else {
		n >>= 52 - exponent
	}
	if dropped > 0 {
		pow := uint64(math.Pow10(dropped))
		rest := n % pow
		if n /= pow; rest >= pow/2 {
			n++
		}
	}
	digits = strconv.AppendUint(digits, n, 10)
	point := len(digits) + dropped
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, point
}

// digitRun divides b by s digit after digit, until what is left is less than m, half the distance to the next float64.
type digitRun struct {
	exponent, significant, fractionBits, tiny int
	decimal                                   int // estimated decimal exponent
	b, s, m, tens                             big.Int
	width                                     int // bits of the integers that Java computes with; 0: as many as needed
}

func (d *digitRun) estimate(fraction uint64) {
	mantissa := math.Float64frombits(1023<<52 | fraction&(1<<52-1))
	d.decimal = int(math.Floor((mantissa-1.5)*0.289529654 + 0.176091259 + float64(d.exponent)*0.301029995663981))
}

func (d *digitRun) scale(fraction uint64) {
	b5, s5 := max(0, -d.decimal), max(0, d.decimal)
	b2, s2 := b5+d.tiny+d.exponent, s5+d.tiny
	m2 := b2 - d.significant
	b2 -= d.fractionBits - 1
	common := min(b2, s2)
	b2, s2, m2 = b2-common, s2-common, m2-common
	if d.fractionBits == 1 {
		m2--
	}
	if m2 < 0 {
		b2, s2, m2 = b2-m2, s2-m2, 0
	}
	switch need := max(d.fractionBits+b2+bitsOfFives(b5), s2+1+bitsOfFives(s5+1)); {
	case need < 32:
		d.width = 32
	case need < 64:
		d.width = 64
	}
	five := big.NewInt(5)
	power := new(big.Int).Exp(five, big.NewInt(int64(b5)), nil)
	d.b.Lsh(d.b.Mul(new(big.Int).SetUint64(fraction), power), uint(b2))
	d.m.Lsh(power, uint(m2))
	d.s.Lsh(d.s.Exp(five, big.NewInt(int64(s5)), nil), uint(s2))
	d.tens.Mul(&d.s, big.NewInt(10))
}

// bitsOfFives is the number of bits of 5^n, or what Java takes for it.
func bitsOfFives(n int) int {
	if n >= 27 {
		return 3 * n
	}
	return int(float64(n)*math.Log2(5)) + 1
}

// next takes one digit, and tells whether what is left is too low or too high to go on. Where Java's integers overflow,
// so do these.
func (d *digitRun) next() (digit byte, low, high bool) {
	var q, sum big.Int
	ten := big.NewInt(10)
	q.QuoRem(&d.b, &d.s, &d.b)
	d.b.Mul(&d.b, ten)
	d.m.Mul(&d.m, ten)
	digit, low = byte(q.Uint64()), d.b.Cmp(&d.m) < 0
	against := sum.Add(&d.b, &d.m).Cmp(&d.tens)
	switch {
	case d.width == 0:
		return digit, low, against >= 0
	case d.m.BitLen() >= d.width:
		return digit, true, true
	default:
		return digit, low, against > 0 && sum.BitLen() < d.width
	}
}

func (d *digitRun) run(digits []byte) ([]byte, int) {
	digit, low, high := d.next()
	if digit == 0 && !high {
		d.decimal--
	} else {
		digits = append(digits, '0'+digit)
	}
	if d.decimal < -3 || d.decimal >= 8 {
		low, high = false, false // the other notation has at least two digits
	}
	for !low && !high {
		digit, low, high = d.next()
		digits = append(digits, '0'+digit)
	}
	if high && d.roundsUp(low, digits[len(digits)-1]) {
		return roundUp(digits, d.decimal+1)
	}
	return digits, d.decimal + 1
}

func (d *digitRun) roundsUp(low bool, last byte) bool {
	half := d.b.Lsh(&d.b, 1).Cmp(&d.tens)
	return !low || half > 0 || half == 0 && last&1 != 0
}

func roundUp(digits []byte, point int) ([]byte, int) {
	i := len(digits) - 1
	for ; digits[i] == '9' && i > 0; i-- {
		digits[i] = '0'
	}
	if digits[i] == '9' {
		digits[0] = '1'
		return digits, point + 1
	}
	digits[i]++
	return digits, point
}
