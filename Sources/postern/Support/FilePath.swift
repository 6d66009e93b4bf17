// Paths that are typed on the command line.

import ArgumentParser

/// The path as it was typed, for the `transform` of an option or argument. Refuses an empty one, which a variable that is not set
/// gives: it would name the current folder, or no file.
@Sendable func filePath(_ text: String) throws -> String {
    guard !text.utf8.isEmpty else { throw ValidationError("the path is empty") }
    return text
}
