package render

import (
	"math"
	"strconv"
	"time"
)

// Count writes a number with thousands separators: 48,112.
func Count(n int64) string { return string(AppendCount(nil, n)) }

// AppendCount appends what Count returns.
func AppendCount(dst []byte, n int64) []byte {
	start := len(dst)
	dst = strconv.AppendInt(dst, n, 10)
	first := start
	if n < 0 {
		first++
	}
	for i := len(dst) - 3; i > first; i -= 3 {
		dst = append(dst, 0)
		copy(dst[i+1:], dst[i:])
		dst[i] = ','
	}
	return dst
}

// Plural writes a count and its noun: "1 segment", "48,112 batches".
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Bytes writes a size in binary units with one decimal: "512 B", "1.8 KiB", "3.1 GiB".
func Bytes(n int64) string {
	if n < 1024 && n > -1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		value /= 1024
		if math.Abs(value) < 1023.95 {
			return decimal(value) + " " + unit
		}
	}
	return decimal(value/1024) + " EiB"
}

// Duration writes milliseconds in the largest unit that fits, with one decimal below 100: "350 ms", "2.2 s", "12 min",
// "5.5 h", "9.1 d", "-365 d".
func Duration(ms int64) string {
	value := float64(ms)
	if math.Abs(value) < 1000 {
		return strconv.FormatInt(ms, 10) + " ms"
	}
	units := []struct {
		name string
		ms   float64
	}{{"s", 1000}, {"min", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000}}
	unit := units[0]
	for _, u := range units {
		if math.Abs(value) >= u.ms {
			unit = u
		}
	}
	return decimal(value/unit.ms) + " " + unit.name
}

// decimal writes a number with one decimal, or with none where that says nothing: 9.1, 12, 365.
func decimal(value float64) string {
	if math.Abs(value) >= 99.95 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	text := strconv.FormatFloat(value, 'f', 1, 64)
	if len(text) > 2 && text[len(text)-2:] == ".0" {
		return text[:len(text)-2]
	}
	return text
}

// Instant writes epoch milliseconds as "2023-11-14 22:13:20.000" in UTC. Outside the years 0 to 9999 it writes the
// number.
func Instant(timestampMs int64) string { return formatTime(timestampMs, "2006-01-02 15:04:05.000") }

// Minute writes epoch milliseconds as "2023-11-14 22:13" in UTC. Outside the years 0 to 9999 it writes the number.
func Minute(timestampMs int64) string { return formatTime(timestampMs, "2006-01-02 15:04") }

func formatTime(timestampMs int64, layout string) string {
	if !writableTime(timestampMs) {
		return strconv.FormatInt(timestampMs, 10)
	}
	return time.UnixMilli(timestampMs).UTC().Format(layout)
}
