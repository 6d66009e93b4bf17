// How well a policy tells people and attackers apart: thirty days of a made-up population, put to the HTTP API as an app's
// backend does.
//
// swift run -c release FraudBench [folder of a policy] [people] [seed]
//
// The population is a model, not a measurement: its parameters are in Population.swift. It compares one policy with another.

import AsyncHTTPClient
import Decisions
import Foundation
import NIOPosix
import RiskPolicy

let arguments = Array(CommandLine.arguments.dropFirst())
var parameters = PopulationParameters()
if arguments.count > 1, let people = Int(arguments[1]) { parameters.people = people }
if arguments.count > 2, let seed = UInt64(arguments[2]) { parameters.seed = seed }

func policy() throws -> LoadedPolicy {
    guard let folder = arguments.first, folder != "default" else { return try LoadedPolicy(.builtIn) }
    let files = try ["policy.yaml"].map { ($0, try String(contentsOfFile: folder + "/" + $0, encoding: .utf8)) }
    let document = PolicyDocument(files: Dictionary(uniqueKeysWithValues: files))
    return try LoadedPolicy(StoredPolicy(name: "candidate", version: "", document: document.octets))
}

let population = Population(parameters)
let start: Int64 = 1_790_000_000
let client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
let loaded = try policy()
let world = try await World(loaded, client, start: start - 500 * 86_400)

let (report, number) = try await Lives.run(world, population, start: start)
print(
    "\(loaded.name) \(loaded.version), \(parameters.people) people, \(number) questions in thirty days, seed \(parameters.seed)\n"
)
print(report.text)
world.end()
try await client.shutdown().get()
