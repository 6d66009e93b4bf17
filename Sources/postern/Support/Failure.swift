// How commands fail: one line on standard error, and an exit status of sysexits.h.

import ArgumentParser
import DNSClient
import Database
import Foundation
import Mail
import PosternConfiguration
import PostfixSetup
import Synchronization

/// An error of a command itself.
struct CommandError: Error, CustomStringConvertible {
    /// A status of `sysexits.h`.
    let status: Int32
    /// In one line.
    let message: String

    var description: String { message }

    /// - Parameter status: a status of `sysexits.h`.
    init(status: Int32, message: String) {
        self.status = status
        self.message = message
    }

    /// The command was used incorrectly.
    static func usage(_ message: String) -> CommandError {
        CommandError(status: EX_USAGE, message: message)
    }
    /// The input is not valid.
    static func data(_ message: String) -> CommandError {
        CommandError(status: EX_DATAERR, message: message)
    }
    /// The input is missing or cannot be read.
    static func noInput(_ message: String) -> CommandError {
        CommandError(status: EX_NOINPUT, message: message)
    }
}

/// The messages of the commands for errors, and the exit status of each error.
enum Failure {
    /// Whether only errors go to standard error: `--quiet`.
    static var isQuiet: Bool {
        get { quiet.load(ordering: .relaxed) }
        set { quiet.store(newValue, ordering: .relaxed) }
    }
    private static let quiet = Atomic(false)

    /// A line on standard error that does not end the command; none with `--quiet`.
    static func warn(_ message: String) { note("postern: warning: \(message)") }

    /// The same for a message about one part of the input.
    static func remark(_ message: String) { note("postern: \(message)") }

    /// Prints a note unchanged; nothing with `--quiet`.
    static func note(_ text: String) { if !isQuiet { line(text) } }

    /// Writes a line to standard error. The line may contain user input: control characters are
    /// replaced, so that they do not control the terminal.
    static func line(_ text: String) {
        let plain = text.unicodeScalars.map { scalar in
            scalar != "\n" && scalar != "\t" && scalar.properties.generalCategory == .control
                ? "\u{FFFD}" : scalar
        }
        ErrorOutput.write(String(String.UnicodeScalarView(plain)) + "\n")
    }

    /// The message for an error, in one line.
    static func message(_ error: any Error) -> String {
        switch error {
        case let error as CommandError: error.message
        case let error as CocoaError: (error.filePath.map { "\($0): " } ?? "") + words(error)
        default: "\(error)"
        }
    }

    /// The system's text for an error number, as in "permission denied".
    static func words(_ number: Int32) -> String {
        let text = String(cString: strerror(number))
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// Foundation's own description contains domains and codes; the underlying error has the
    /// system's text.
    private static func words(_ error: CocoaError) -> String {
        if let system = error.underlying as? POSIXError { return words(system.code.rawValue) }
        if let system = error.underlying as NSError?, system.domain == NSPOSIXErrorDomain {
            return words(Int32(clamping: system.code))
        }
        return switch error.code {
        case .fileNoSuchFile, .fileReadNoSuchFile: words(ENOENT)
        case .fileReadNoPermission, .fileWriteNoPermission: words(EACCES)
        case .fileWriteFileExists: words(EEXIST)
        case .fileWriteOutOfSpace: words(ENOSPC)
        case .fileWriteVolumeReadOnly: words(EROFS)
        case .fileReadInapplicableStringEncoding, .fileReadUnknownStringEncoding: "not UTF-8"
        default: error.isFileError ? "cannot be read or written" : "cannot be used"
        }
    }

    /// The exit status for Postern's own errors; nil for those of ArgumentParser.
    static func status(_ error: any Error) -> Int32? {
        switch error {
        case let error as CommandError: error.status
        case let error as ConfigurationError: status(error.code)
        case let error as StoreFailure: status(error.code)
        case let error as MailerError: status(error)
        case is TemplateError: EX_CONFIG
        case let error as OwnedFile.Failure:
            [ENOSPC, EDQUOT, EFBIG, EIO].contains(error.code) ? EX_IOERR : EX_CANTCREAT
        case is PostfixToolError: EX_UNAVAILABLE
        case is DNSClientError, is DecodingError: EX_DATAERR
        case let error as CocoaError:
            [.fileReadNoPermission, .fileWriteNoPermission].contains(error.code)
                ? EX_NOPERM : EX_NOINPUT
        default: nil
        }
    }

    private static func status(_ code: StoreFailure.Code) -> Int32 {
        switch code {
        case .refused(.notFound): EX_NOINPUT
        case .refused(.exists), .refused(.limit): EX_CANTCREAT
        case .refused(.overtaken): EX_TEMPFAIL
        case .refused: EX_DATAERR
        case .temporary(.unreachable): EX_UNAVAILABLE
        case .temporary(.inputOutput), .temporary(.diskFull): EX_IOERR
        case .temporary: EX_TEMPFAIL
        case .permanent(.readOnly), .permanent(.refused): EX_NOPERM
        case .permanent(.newerSchema), .permanent(.changedMigration), .permanent(.unsealing):
            EX_CONFIG
        case .permanent(.corrupted), .permanent(.empty): EX_UNAVAILABLE
        case .permanent: EX_SOFTWARE
        }
    }

    /// The exit status says whether a retry may succeed.
    static func status(_ error: MailerError) -> Int32 {
        if case .submission(.permanent) = error { EX_UNAVAILABLE } else { EX_TEMPFAIL }
    }

    private static func status(_ code: ConfigurationError.Code) -> Int32 {
        switch code {
        case .exists: EX_CANTCREAT
        case .inputOutput: EX_IOERR
        case .notPermitted: EX_NOPERM
        default: EX_CONFIG
        }
    }
}
