// Options of benchmarks.

import ArgumentParser

/// Values divided by commas: `10000,100000`.
package struct CommaSeparated<Value: ExpressibleByArgument & Sendable>: ExpressibleByArgument,
    ExpressibleByArrayLiteral, Sendable
{
    /// In the given order.
    package let values: [Value]

    package init(arrayLiteral elements: Value...) { values = elements }

    /// Nil if one of them is invalid.
    package init?(argument: String) {
        let words = argument.split(separator: ",", omittingEmptySubsequences: false)
        values = words.compactMap { Value(argument: String($0)) }
        if values.count < words.count { return nil }
    }

    package var defaultValueDescription: String {
        values.map(\.defaultValueDescription).joined(separator: ",")
    }

    /// The allowed values; empty if they are not a list.
    package static var allValueStrings: [String] { Value.allValueStrings }
}

extension ParsableCommand {
    /// Refuses numbers below 1, each with the name of its option.
    package func requirePositive(_ numbers: KeyValuePairs<String, Int>) throws {
        for (name, number) in numbers where number < 1 {
            throw ValidationError("--\(name) must be 1 or more.")
        }
    }
}
