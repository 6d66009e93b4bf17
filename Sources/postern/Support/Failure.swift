// How commands fail: one line on standard error, and an exit status of sysexits.h.

import Database
import ArgumentParser
import DNSClient
import Foundation
import HTTP
import Mail
import Milter
import Monitoring
import PosternConfiguration

/// An error of a command itself.
struct CommandError: Error, CustomStringConvertible {
    let status: Int32
    let message: String

    var description: String { message }

    /// The command was not used as it should be.
    static func usage(_ message: String) -> CommandError { CommandError(status: EX_USAGE, message: message) }
    /// What was given cannot be taken.
    static func data(_ message: String) -> CommandError { CommandError(status: EX_DATAERR, message: message) }
    /// Standard input did not hold what was expected.
    static func noInput(_ message: String) -> CommandError { CommandError(status: EX_NOINPUT, message: message) }
}

enum Failure {
    /// Prints what is wrong and ends the process. Help and version are printed as they are, with status 0.
    /// - Parameter log: the form of the log that this is the last line of; nil for a command.
    static func exit(_ error: any Error, log: Configuration.LogSettings.Format? = nil) -> Never {
        if let status = status(error) {
            if let log, log == .json || LogOutput.isJournal {
                LogOutput.fatal(message(error), log)
            } else {
                line("postern: \(message(error))")
            }
            Foundation.exit(status)
        }
        let code = Postern.exitCode(for: error)
        guard code == .validationFailure else { Postern.exit(withError: error) }
        // ArgumentParser says what is wrong, then usage and a pointer to the help over several lines: one line will do.
        let full = Postern.fullMessage(for: error)
        let pointer = full.split(separator: "\n").last { $0.contains("--help") }.flatMap { line in
            line.split(separator: "'").dropFirst().first.map { "; see \($0)" }
        }
        let message = Postern.message(for: error).replacingOccurrences(of: "\n", with: " ")
        line("postern: \(pointer != nil && message.hasSuffix(".") ? String(message.dropLast()) : message)\(pointer ?? "")")
        Foundation.exit(code.rawValue)
    }

    /// A line on standard error that does not end the command.
    static func warn(_ message: String) { line("postern: warning: \(message)") }

    /// A line on standard error for people, where standard output is for a program.
    static func note(_ message: String) { line(message) }
    /// The same for what is said about one part of the input.
    static func remark(_ message: String) { line("postern: \(message)") }

    private static func line(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    private static func message(_ error: any Error) -> String {
        switch error {
        case let error as CommandError: error.message
        case let error as CocoaError: (error.filePath.map { "\($0): " } ?? "") + words(error)
        default: "\(error)"
        }
    }

    /// What the system says of an error, as in "permission denied".
    static func words(_ number: Int32) -> String {
        let text = String(cString: strerror(number))
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// Foundation's own description names its domains and codes; what the system said is beneath it.
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

    /// The exit status for errors that are ours; nil for ArgumentParser's.
    private static func status(_ error: any Error) -> Int32? {
        switch error {
        case let error as CommandError: error.status
        case let error as StoreRefusal: status(error.code)
        case let error as ConfigurationError: status(error.code)
        case let error as TemporaryStoreError: status(error.code)
        case let error as PermanentStoreError: status(error.code)
        case is MilterServerError, is APIServiceError: EX_UNAVAILABLE
        case let error as MailerError: status(error)
        case is TemplateError: EX_CONFIG
        case is OwnedFile.Failure: EX_CANTCREAT
        case is DNSClientError, is DecodingError: EX_DATAERR
        case is CocoaError: EX_NOINPUT
        default: nil
        }
    }

    private static func status(_ code: StoreRefusal.Code) -> Int32 {
        switch code {
        case .notFound: EX_NOINPUT
        case .exists, .limit: EX_CANTCREAT
        default: EX_DATAERR
        }
    }

    /// What may work later, and what will not.
    static func status(_ error: MailerError) -> Int32 {
        if case .submission(.permanent) = error { EX_UNAVAILABLE } else { EX_TEMPFAIL }
    }

    private static func status(_ code: ConfigurationError.Code) -> Int32 {
        switch code {
        case .exists: EX_CANTCREAT
        case .inputOutput: EX_IOERR
        default: EX_CONFIG
        }
    }

    private static func status(_ code: TemporaryStoreError.Code) -> Int32 {
        switch code {
        case .unreachable: EX_UNAVAILABLE
        case .inputOutput, .diskFull: EX_IOERR
        default: EX_TEMPFAIL
        }
    }

    private static func status(_ code: PermanentStoreError.Code) -> Int32 {
        switch code {
        case .readOnly, .refused: EX_NOPERM
        case .newerSchema, .olderSchema, .changedMigration, .unsealing: EX_CONFIG
        case .corrupted: EX_UNAVAILABLE
        default: EX_SOFTWARE
        }
    }
}
