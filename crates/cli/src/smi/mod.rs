//! `anywarp smi`: the devices, and who uses them, as people and scripts know it.
//!
//! What it says comes from [`nvml::machine`], as that of `libnvidia-ml.so.1` does.

mod options;
mod query;
mod table;

use crate::output;
use nvml::machine::Machine;
use options::{Options, Request};
use std::ffi::OsString;
use std::process::ExitCode;

const USAGE: &str = "\
usage: anywarp smi                                     a table of devices and processes
       anywarp smi -L                                  a line for each device
       anywarp smi -q                                  all that is known
       anywarp smi --query-gpu=FIELD[,FIELD]...
                   --query-compute-apps=FIELD[,FIELD]...   a line for each device or process, with
                   --format=csv[,noheader][,nounits]
       anywarp smi --help-query-gpu                    the fields
options: -i, --id=DEVICE[,DEVICE]...   these devices only: numbers, UUIDs or places on the bus
         -l, --loop=SECONDS            again and again
";

/// Exit status for a wrong command line or a device that is not there.
const EXIT_USAGE: u8 = 2;

/// Prints what the arguments ask for.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(reason) => {
            eprint!("anywarp smi: {reason}\n{USAGE}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    loop {
        let machine = Machine::from_environment();
        let text = match answer(&machine, &options) {
            Ok(text) => text,
            Err(reason) => {
                eprintln!("anywarp smi: {reason}");
                return ExitCode::from(EXIT_USAGE);
            }
        };
        if let Err(status) = output::print(&text) {
            return status;
        }
        let Some(pause) = options.again else { return ExitCode::SUCCESS };
        std::thread::sleep(pause);
    }
}

fn answer(machine: &Machine, options: &Options) -> Result<String, String> {
    let devices = options.choose(machine)?;
    Ok(match &options.request {
        Request::Help => USAGE.to_owned(),
        Request::HelpOnFields => query::help(),
        Request::Table => table::table(machine, &devices),
        Request::List => table::list(&devices),
        Request::Everything => query::everything(machine, &devices),
        Request::Devices(fields) => query::devices(machine, &devices, fields, &options.format),
        Request::Processes(fields) => query::processes(machine, &devices, fields, &options.format),
    })
}
