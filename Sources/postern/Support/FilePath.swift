// Paths on the command line.

import ArgumentParser

/// The path unchanged, for the `transform` of an option or argument. Refuses an empty path, as from
/// an unset shell variable: it would name the current folder, or no file.
@Sendable func filePath(_ text: String) throws -> String {
    guard !text.utf8.isEmpty else { throw ValidationError("the path is empty") }
    return text
}
