// http-load: POST requests over kept connections, at a rate that answers do not delay or as fast as
// answers come, with the duration of each. Delays count: a request is timed from when it was due,
// not from when a connection was free for it.

import ArgumentParser
import BenchReport
import Foundation

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "http-load",
        abstract:
            "Send POST requests at a rate, and print how long each took, as JSON (LoadResult).")

    @Argument(help: "Address of the server.") var host: String
    @Argument(help: "Its port.") var port: UInt16
    @Argument(help: "Path of the route.") var path: String
    @Argument(help: "API key of the team.") var key: String
    @Argument(
        help:
            "Body of each request; {n} becomes a number from 1 to <numbers>, times <stride>, in 16 digits."
    )
    var body: String
    @Argument(help: "The largest of these numbers, at least 1.") var numbers: UInt64
    @Argument(help: "Factor by which each number is multiplied.") var stride: UInt64
    @Argument(help: "Connections, at least 1.") var connections: Int
    @Argument(help: "How long to send.") var seconds: Double
    @Argument(
        help:
            "Requests a second, at random moments; 0: each connection asks again once it has an answer."
    )
    var rate: Double

    func validate() throws {
        guard numbers > 0, connections > 0 else {
            throw ValidationError("<numbers> and <connections> must be 1 or more.")
        }
    }
}

let options = Options.parseOrExit()
signal(SIGPIPE, SIG_IGN)
do {
    let (host, rate) = (options.host, options.rate)
    let request = RequestText(
        host: host, path: options.path, key: options.key, body: options.body,
        numbers: options.numbers, stride: options.stride)
    let load = try OpenLoad(
        host: host, port: options.port, request: request, connections: options.connections,
        isClosedLoop: rate <= 0)
    let result = try load.run(seconds: options.seconds, arrivals: rate > 0 ? Arrivals(rate) : nil)
    FileHandle.standardOutput.write(try JSONEncoder().encode(result))
} catch {
    FileHandle.standardError.write(Data("http-load: \(error)\n".utf8))
    exit(1)
}
