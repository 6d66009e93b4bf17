// postern decision label: labels for decisions, one by one or many from a file.

import Accounts
import Administration
import ArgumentParser
import CEL
import Decisions
import Foundation
import Support

extension DecisionCommand {
    struct Label: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "label", abstract: "Label a decision as legitimate or fraudulent.",
            discussion: """
                A label counts like a label that the team reports: in backtests, in outcomes, and in the status of users. \
                The last label counts.

                With --csv, the first line of the file is decision_id,label, and each further line has a decision and its \
                label. If a line is refused, nothing is changed.
                """)

        @Argument(help: "The decision's id; not with --csv.") var decision: String?
        @Argument(help: "legitimate or fraudulent; not with --csv.") var label: DecisionLabel?
        @Option(
            help: ArgumentHelp(
                "A file of decisions with labels; - for standard input.", valueName: "file"),
            completion: .file(),
            transform: filePath)
        var csv: String?
        @OptionGroup var installation: InstallationOptions

        func validate() throws {
            guard (csv == nil) == (decision != nil), (decision == nil) == (label == nil) else {
                throw ValidationError("Give a decision and its label, or --csv.")
            }
        }

        func run() throws {
            try installation.withStore { store in
                if let decision, let label {
                    try Self.apply([(decision, label)], store) { _ in
                        "no decision has the id \(decision)"
                    }
                    return print("Decision \(decision) is \(label.rawValue).")
                }
                let (labels, lines) = try Self.read(csv ?? "-")
                // The message does not repeat the field: it may be from a wrong column, and contain
                // a person's address.
                try Self.apply(labels, store) {
                    "\(csv ?? "-"):\(lines[$0]): no decision has this id"
                }
                print("Labelled \(Count.text(labels.count, "decision")).")
            }
        }

        /// - Parameter refusal: returns the message for the decision at this position if it does
        ///   not exist.
        private static func apply(
            _ labels: [(id: String, label: DecisionLabel)], _ store: Store,
            _ refusal: (Int) -> String
        ) throws {
            guard let unknown = try store.checks.label(labels, thisChange()) else { return }
            throw CommandError.noInput(refusal(unknown))
        }

        private static func read(
            _ file: String
        ) throws -> (labels: [(id: String, label: DecisionLabel)], lines: [Int]) {
            var labels: [(id: String, label: DecisionLabel)] = []
            var lines: [Int] = []
            var isFirst = true
            // The position in `labels` of each decision.
            var places: [ExactString: Int] = [:]
            func take(_ record: CSVRecord) throws {
                func refuse(_ detail: String) -> CommandError {
                    CommandError.data("\(file):\(record.line): \(detail)")
                }
                if let defect = record.defect { throw refuse(defect) }
                if isFirst {
                    isFirst = false
                    guard record.columnNames == ["decision_id", "label"] else {
                        throw refuse("the first line must be decision_id,label")
                    }
                    return
                }
                guard let fields = record.fields(2) else {
                    throw refuse("a line is a decision's id and its label")
                }
                guard let label = DecisionLabel(rawValue: fields[1].asciiLowercased) else {
                    throw refuse("a label is legitimate or fraudulent")
                }
                // The last label of a decision counts.
                if let place = places[ExactString(fields[0])] {
                    labels[place].label = label
                    return
                }
                places[ExactString(fields[0])] = labels.count
                guard labels.count < CheckRepository.labelsAtOnce else {
                    throw refuse(
                        "more than \(Count.text(CheckRepository.labelsAtOnce)) labels: split the file"
                    )
                }
                labels.append((fields[0], label))
                lines.append(record.line)
            }
            var parser = CSVParser()
            let input = file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file)
            guard let input else { throw CommandError.noInput("\(file): cannot be read") }
            var status = stat()
            guard fstat(input.fileDescriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR
            else {
                throw CommandError.noInput("\(file): a folder")
            }
            while let piece = try input.read(upToCount: 1 << 16), !piece.isEmpty {
                try parser.push(piece, take)
            }
            try parser.finish(take)
            if isFirst {
                throw CommandError.data("\(file): the first line must be decision_id,label")
            }
            return (labels, lines)
        }
    }
}

extension DecisionLabel: ExpressibleByArgument {}
