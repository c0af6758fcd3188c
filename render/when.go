package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the RFC 3339 forms that are understood, a space for the T included. Without a zone they are UTC.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
	"2006-01-02",
}

// ParseTime reads a point in time as users give it and returns epoch milliseconds: the number itself; RFC 3339, with or
// without a zone (then UTC), to the minute, or a date alone (midnight UTC); or relative to now: -2h, -3d, -1d12h, +30m,
// and "now". The error is a sentence that says what is understood.
func ParseTime(text string, now time.Time) (int64, error) {
	if text == "now" {
		return now.UnixMilli(), nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ms, nil
	}
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		if offsetMs, ok := parseOffset(text); ok {
			return now.UnixMilli() + offsetMs, nil
		}
	}
	iso := strings.Replace(text, " ", "T", 1)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, iso); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("%q is not a time: give epoch milliseconds (1700000000000), RFC 3339 (2023-11-14T22:13:20Z, "+
		"UTC where the zone is left out, or a date alone), or a distance from now (-2h, -3d)", text)
}

// ParseDuration reads a duration in units of ms, s, m, h, d and w: 7d, 1d12h, 1.5h.
func ParseDuration(text string) (ms int64, ok bool) {
	if text == "" || strings.Trim(text, "0123456789.") == "" {
		return 0, false
	}
	return parseOffset("+" + text)
}

// parseOffset reads a signed distance in units of ms, s, m, h, d and w: -2h, -1d12h, -1.5h.
func parseOffset(text string) (offsetMs int64, ok bool) {
	rest := text[1:]
	var sum float64
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		value, err := strconv.ParseFloat(rest[:digits], 64)
		if err != nil {
			return 0, false
		}
		rest = rest[digits:]
		letters := len(rest) - len(strings.TrimLeft(rest, "mshdw"))
		unitMs, known := offsetUnitsMs(rest[:letters])
		if !known {
			return 0, false
		}
		sum += value * unitMs
		rest = rest[letters:]
	}
	const farMs = 1 << 53 // beyond it the sum is not exact, and no clock reaches it
	if text == "-" || text == "+" || sum > farMs {
		return 0, false
	}
	if text[0] == '-' {
		sum = -sum
	}
	return int64(math.Round(sum)), true
}

func offsetUnitsMs(unit string) (float64, bool) {
	switch unit {
	case "ms":
		return 1, true
	case "s":
		return 1000, true
	case "m":
		return 60 * 1000, true
	case "h":
		return 3600 * 1000, true
	case "d":
		return 24 * 3600 * 1000, true
	case "w":
		return 7 * 24 * 3600 * 1000, true
	}
	return 0, false
}
