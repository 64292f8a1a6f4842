//! The command line of `anywarp smi`.

use super::query::{self, DeviceField, ProcessField};
use nvml::machine::{Device, Machine};
use std::ffi::OsString;
use std::time::Duration;

/// What is asked for.
pub struct Options {
    pub request: Request,
    pub format: Format,
    /// The devices, as they are written; all of them if there are none.
    pub devices: Vec<String>,
    /// Ask again after this time.
    pub again: Option<Duration>,
}

/// What is to be printed.
pub enum Request {
    Table,
    List,
    Everything,
    Devices(Vec<&'static DeviceField>),
    Processes(Vec<&'static ProcessField>),
    Help,
    HelpOnFields,
}

/// How lines of values are written.
pub struct Format {
    pub header: bool,
    pub units: bool,
}

impl Options {
    /// Reads the command line.
    pub fn parse(arguments: &[OsString]) -> Result<Options, String> {
        let (mut request, mut csv) = (Request::Table, false);
        let mut options = Options {
            request: Request::Table,
            format: Format { header: true, units: true },
            devices: Vec::new(),
            again: None,
        };
        let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
        while let Some(argument) = arguments.next() {
            let (name, given) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            let mut value =
                || given.clone().or_else(|| arguments.next()).ok_or(format!("{name} needs a value"));
            match &*name {
                "-L" | "--list-gpus" => request = Request::List,
                "-q" | "--query" => request = Request::Everything,
                "-h" | "--help" => request = Request::Help,
                "--help-query-gpu" => request = Request::HelpOnFields,
                "--query-gpu" => request = Request::Devices(query::device_fields(&value()?)?),
                "--query-compute-apps" => request = Request::Processes(query::process_fields(&value()?)?),
                "-i" | "--id" => {
                    options.devices = value()?.split(',').map(|id| id.trim().to_owned()).collect()
                }
                "-l" | "--loop" => options.again = Some(Duration::from_secs(seconds(&value()?)?)),
                "--format" => {
                    for word in value()?.split(',') {
                        match word.trim() {
                            "csv" => csv = true,
                            "noheader" => options.format.header = false,
                            "nounits" => options.format.units = false,
                            other => return Err(format!("{other}: no such format")),
                        }
                    }
                }
                other => return Err(format!("{other}: no such option")),
            }
        }
        if matches!(request, Request::Devices(_) | Request::Processes(_)) && !csv {
            return Err("a query needs --format=csv".to_owned());
        }
        Ok(Options { request, ..options })
    }

    /// The devices that are asked about.
    pub fn choose<'a>(&self, machine: &'a Machine) -> Result<Vec<&'a Device>, String> {
        let all = machine.devices();
        if self.devices.is_empty() {
            return Ok(all.iter().collect());
        }
        let is_named = |device: &&Device, id: &str| {
            let bus = device.pci_bus_id();
            device.index.to_string() == id
                || device.uuid() == id
                || (id.contains(':') && bus.ends_with(&id.to_uppercase()))
        };
        let find = |id: &String| {
            all.iter().find(|device| is_named(device, id)).ok_or(format!("there is no device {id}"))
        };
        self.devices.iter().map(find).collect()
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|seconds| *seconds > 0).ok_or(format!("{text}: no number of seconds"))
}
