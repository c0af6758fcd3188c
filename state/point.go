package state

// Point is a place in a log: after the record of an offset, or after the last that is not younger than a time if
// IsTime; the log's end if it is the zero Point.
type Point struct {
	Given  bool
	IsTime bool
	Offset int64
	TimeMs int64
}
