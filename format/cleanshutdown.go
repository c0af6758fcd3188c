package format

import (
	"cmp"
	"encoding/json"
)

// CleanShutdown is the content of a .kafka_cleanshutdown marker (CleanShutdownFileHandler, KIP-966). That the file
// exists is all that matters to a broker's recovery; the content only tells the controller which life of the broker
// ended.
type CleanShutdown struct {
	Version     int32
	BrokerEpoch int64 // −1 if unknown
}

// DecodeCleanShutdown reads a marker. Brokers before the JSON form wrote an empty file, which is not an error; other
// content without a broker epoch gives an *Error, and a broker takes the epoch for unknown.
func DecodeCleanShutdown(raw []byte) (CleanShutdown, error) {
	unknown := CleanShutdown{BrokerEpoch: -1}
	if len(raw) == 0 {
		return unknown, nil
	}
	var content struct {
		Version     int32  `json:"version"`
		BrokerEpoch *int64 `json:"brokerEpoch"`
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		return unknown, jsonError("clean shutdown marker", err)
	}
	if content.BrokerEpoch == nil {
		return unknown, &Error{What: "clean shutdown marker", Want: "brokerEpoch", Got: "none", Err: ErrValue}
	}
	return CleanShutdown{Version: content.Version, BrokerEpoch: *content.BrokerEpoch}, nil
}

var cleanShutdownContent = Content{describe: (*describer).cleanShutdown, Row: "properties",
	Rows: func(raw []byte, row func([]Value) error) error {
		m, bad := DecodeCleanShutdown(raw)
		return cmp.Or(row([]Value{number("version", "version", m.Version),
			number("brokerEpoch", "broker_epoch", m.BrokerEpoch)}), bad)
	}}
