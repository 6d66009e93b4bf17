// The errors in a configuration, with their places.

import Support

/// A configuration that cannot be used. One line: the place, the problem and the remedy.
/// Never repeats a secret.
package struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }
        /// No configuration file was named, or it does not exist.
        package static let missing = Code(rawValue: "missing")
        /// The text is not YAML, or not of the expected shape.
        package static let syntax = Code(rawValue: "syntax")
        /// A key that does not exist.
        package static let unknownKey = Code(rawValue: "unknown key")
        /// A value outside its range or of the wrong kind, or a required one that is absent.
        package static let invalidValue = Code(rawValue: "invalid value")
        /// The key file is missing, readable by others, or malformed.
        package static let keyFile = Code(rawValue: "key file")
        /// A file or object exists already and would be overwritten.
        package static let exists = Code(rawValue: "exists")
        /// A file or folder cannot be read or created.
        package static let inputOutput = Code(rawValue: "input/output")
        /// A file that the user may not read.
        package static let notPermitted = Code(rawValue: "not permitted")
    }
    package let code: Code
    /// `file:line`, a variable's name, or a flag; nil if the message contains the place.
    package let place: String?
    package let message: String

    package init(_ code: Code, at place: String? = nil, _ message: String) {
        self.code = code
        self.place = place
        self.message = message
    }

    package var description: String { place.map { "\($0): \(message)" } ?? message }
}

/// Finds the known name that is nearest to a mistyped one.
enum NearestName {
    /// The candidate at the smallest edit distance, if that distance is at most a third of the
    /// name's length, or 2 if that is more.
    static func find(_ name: String, among candidates: [String]) -> String? {
        let best = candidates.map { (name: $0, distance: editDistance(name, $0)) }.min {
            $0.distance < $1.distance
        }
        guard let best, best.distance <= max(2, name.utf8.count / 3) else { return nil }
        return best.name
    }
}
