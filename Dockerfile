# kseg alone in an image: docker run --rm -v /var/kafka-logs:/data:ro kseg verify /data
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X kseg/cmd.version=${VERSION}" -o /kseg .

FROM scratch
COPY --from=build /kseg /kseg
# Not root: mount log directories that this user can read, or run with --user.
USER 65532:65532
ENTRYPOINT ["/kseg"]
