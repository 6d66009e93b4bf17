// The end of the process after an error.

import ArgumentParser
import Foundation
import HTTP
import Milter
import Monitoring
import PosternConfiguration

extension Failure {
    /// Prints the error and ends the process. Help and version are printed unchanged, with status
    /// 0.
    /// - Parameter log: the form of the log whose last line this is; nil for a command.
    static func exit(_ error: any Error, log: Configuration.LogSettings.Format? = nil) -> Never {
        let ours =
            error is MilterServerError || error is APIServiceError ? EX_UNAVAILABLE : status(error)
        if let status = ours {
            if let log, log == .json || LogOutput.isJournal {
                LogOutput.fatal(message(error), log)
            } else {
                line("postern: \(message(error))")
            }
            Foundation.exit(status)
        }
        let code = Postern.exitCode(for: error)
        if code == .success {
            // Help, version and completion scripts go to standard output, because the user may
            // redirect them into a file.
            let text = Postern.fullMessage(for: error)
            if !text.isEmpty { print(text) }
            do { try finishOutput() } catch { exit(error) }
            Foundation.exit(code.rawValue)
        }
        guard code == .validationFailure else { Postern.exit(withError: error) }
        // ArgumentParser prints the error, the usage and a pointer to the help on several lines:
        // this prints one line.
        let full = Postern.fullMessage(for: error)
        let pointer = full.split(separator: "\n").last { $0.contains("--help") }.flatMap { line in
            line.split(separator: "'").dropFirst().first.map { "; see \($0)" }
        }
        let message = Postern.message(for: error).replacingOccurrences(of: "\n", with: " ")
        line(
            "postern: \(pointer != nil && message.hasSuffix(".") ? String(message.dropLast()) : message)\(pointer ?? "")"
        )
        Foundation.exit(code.rawValue)
    }
}
