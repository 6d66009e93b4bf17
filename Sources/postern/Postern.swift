import ArgumentParser

@main
struct Postern: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "postern")
}
